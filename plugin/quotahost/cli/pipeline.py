"""``quotahost pipeline``: runs the Spark pipeline on this machine, or prints the line for spark-submit.

The command's options are those of :class:`quotahost.pipeline.options.Options`, which names, describes and checks each.
Only the work itself needs Spark, so the help works without the extra ``spark``. Next: :mod:`quotahost.pipeline.main`.
"""

from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.fields import FieldInfo

from quotahost.cli.console import say
from quotahost.errors import QuotahostError
from quotahost.pipeline.options import Options, as_text, options


class NoSpark(QuotahostError):
    """Spark isn't installed."""

    exit_code = 2


def pipeline(*, print_submit: bool, **given: object) -> None:
    """Run the pipeline that turns all brokers' snapshots into one record of each cluster.

    Every option can also be set in the environment, as QUOTAHOST_PIPELINE_BOOTSTRAP and so on; secrets belong into
    the file of --kafka-config or into QUOTAHOST_PIPELINE_KAFKA, a JSON object.
    """
    try:
        from quotahost.pipeline import main
    except ModuleNotFoundError as missing:
        # Any other missing module is a defect, which the advice to install Spark would hide.
        if (missing.name or "").split(".")[0] not in ("pyspark", "py4j"):
            raise
        raise NoSpark("the pipeline needs Spark: pip install 'quotahost[spark]'") from None
    chosen = options(**given)
    if print_submit:
        say(main.submit_line(chosen, chosen.master))
        return
    main.configure_logging()
    main.run(chosen)


def _parameter(name: str, kind: Any, default: Any, option: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])


def _of_field(name: str, field: FieldInfo) -> Parameter:
    """An option of the command, None where it isn't given; the model converts and checks what typer doesn't."""
    kind: Any = field.annotation if field.annotation in (int, int | None, Path | None) else str
    default = not field.is_required() and field.default is not None and as_text(field.default)
    # None and not the default itself, which would win over a variable of the environment.
    return _parameter(name, kind | None, None, typer.Option(help=field.description, show_default=default))


_SUBMIT = _parameter("print_submit", bool, False, typer.Option(help="Print the spark-submit line, and end."))
# Typer reads a command's options from its signature.
pipeline.__signature__ = Signature(  # type: ignore[attr-defined]
    # kafka takes secrets, and a command line is visible to others on the machine.
    [_SUBMIT, *(_of_field(name, field) for name, field in Options.model_fields.items() if name != "kafka")]
)
