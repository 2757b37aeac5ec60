"""The command ``quotahost``: registers all commands, and ends each that fails with a message and an exit code.

``explain`` and ``top`` have parsers of their own (``quotahost.cli.start``).
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from quotahost.cli.console import say
from quotahost.cli.doctor.doctor import doctor, plugins
from quotahost.cli.install import install
from quotahost.cli.lab.replay import replay
from quotahost.cli.lab.report import report
from quotahost.cli.lab.simulate_disk import disk
from quotahost.cli.lab.simulate_quota import quota
from quotahost.cli.new import new
from quotahost.cli.pipeline import pipeline
from quotahost.cli.quotas.command import quotas
from quotahost.cli.start import QUICK, run
from quotahost.errors import QuotahostError
from quotahost.settings.broker import properties_table


class Commands(TyperGroup):
    """All commands. If one raises a QuotahostError, its message goes to stderr, without a traceback."""

    def invoke(self, ctx: Any) -> Any:  # typer carries a Context of its own, or click's, by its version
        """Run the command; the ``exit_code`` of an error becomes the process's."""
        try:
            return super().invoke(ctx)
        except QuotahostError as error:
            say(str(error), to_stderr=True)
            raise typer.Exit(error.exit_code) from None


# Locals in a traceback could show secrets.
app = typer.Typer(cls=Commands, no_args_is_help=True, add_completion=False, pretty_exceptions_show_locals=False)


def _version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        say(version("quotahost"))
    except PackageNotFoundError:
        say("not installed: run from a source tree")
    raise typer.Exit


@app.callback()
def main(
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Python quotas inside a Kafka broker."""


def properties() -> None:
    # The table ends with its own line break: the output is put into documents as it is.
    say(properties_table(), end="")


def _quick(ctx: typer.Context) -> None:
    raise typer.Exit(run([str(ctx.info_name), *ctx.args]))


simulate = typer.Typer(no_args_is_help=True, help="Show what a setting would do, before anybody sets it.")
simulate.command()(disk)
simulate.command()(quota)
app.command()(plugins)
app.command()(doctor)
app.command()(new)
app.command()(pipeline)
app.command()(report)
app.command()(replay)
for _name, _help in QUICK.items():
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(_name, help=_help, context_settings=passed_on, add_help_option=False)(_quick)
app.add_typer(quotas, name="quotas")
app.add_typer(simulate, name="simulate")
app.command()(install)
app.command()(properties)
