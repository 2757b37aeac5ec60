"""The typer application registers all commands, and ends a failed command with a message and an exit code.

The options of ``pipeline`` are those of :class:`quotahost.pipeline.options.Options`. The help of ``pipeline`` works
without the extra ``spark``, because only the running pipeline needs Spark.
"""

from importlib.metadata import version
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic.fields import FieldInfo
from typer.core import TyperGroup

from quotahost.base.errors import QuotahostError
from quotahost.cli.asking import check_packages
from quotahost.cli.console import say
from quotahost.cli.doctor.doctor import doctor, plugins
from quotahost.cli.explain import explain
from quotahost.cli.install import install
from quotahost.cli.lab.past import replay, report
from quotahost.cli.lab.simulate import disk, quota
from quotahost.cli.new import new
from quotahost.cli.quotas.command import quotas
from quotahost.cli.top import top
from quotahost.pipeline.options import Options, as_text, options
from quotahost.settings.broker import properties_table


class Commands(TyperGroup):
    """All commands. A QuotahostError ends a command with the error's message on stderr and the error's exit code."""

    def invoke(self, ctx: Any) -> Any:  # the Context is typer's or click's, depending on typer's version
        try:
            return super().invoke(ctx)
        except QuotahostError as error:
            say(str(error), to_stderr=True)
            raise typer.Exit(error.exit_code) from None


# Locals in a traceback could show secrets.
app = typer.Typer(cls=Commands, no_args_is_help=True, pretty_exceptions_show_locals=False)


def _version(wanted: bool) -> None:
    if wanted:
        say(version("quotahost"))
        raise typer.Exit


@app.callback()
def main(
    _show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Python quotas inside a Kafka broker."""


def properties() -> None:
    """Print every property with its default, its unit and what it means, as a table in Markdown."""
    # The table ends with its own line break, and the output goes into documents unchanged.
    say(properties_table(), end="")


def pipeline(
    *, print_submit: Annotated[bool, typer.Option(help="Print the spark-submit line and end.")] = False, **given: object
) -> None:
    """Run the pipeline that turns all brokers' snapshots into one record of each cluster.

    Every option can also be set in the environment, as QUOTAHOST_PIPELINE_BOOTSTRAP and so on.
    Put secrets into the file of --kafka-config or into QUOTAHOST_PIPELINE_KAFKA, a JSON object.
    """
    check_packages("pipeline", "pyspark")
    from quotahost.pipeline import main

    chosen = options(**given)
    if print_submit:
        say(main.submit_line(chosen))
        return
    main.configure_logging()
    main.run(chosen)


def _of_field(name: str, field: FieldInfo) -> Parameter:
    """Return the parameter for an option of the pipeline; the model converts and checks what typer doesn't."""
    kind: Any = Path if field.annotation == Path | None else str
    default = not field.is_required() and field.default is not None and as_text(field.default)
    annotation = Annotated[kind | None, typer.Option(help=field.description, show_default=default)]
    # The default is None, because a real default would win over a variable of the environment.
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


_print_submit, _ = signature(pipeline).parameters.values()
# Typer reads a command's options from its signature. kafka has secrets, and other users can read a command line.
pipeline.__signature__ = Signature(  # type: ignore[attr-defined]
    [_print_submit, *(_of_field(name, field) for name, field in Options.model_fields.items() if name != "kafka")]
)


#: These commands have parsers of their own (quotahost.cli.start).
_QUICK: Final = {"explain": explain, "top": top}


def _quick(ctx: typer.Context) -> None:
    raise typer.Exit(_QUICK[str(ctx.info_name)].main(ctx.args))


simulate = typer.Typer(no_args_is_help=True, help="Show what a setting would do, before anybody sets it.")
simulate.command()(disk)
simulate.command()(quota)
for _command in (plugins, doctor, new, pipeline, report, replay):
    app.command()(_command)
for _name, _module in _QUICK.items():
    passed_on = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(_name, help=_module.HELP, context_settings=passed_on, add_help_option=False)(_quick)
app.add_typer(quotas, name="quotas")
app.add_typer(simulate, name="simulate")
app.command()(install)
app.command()(properties)
