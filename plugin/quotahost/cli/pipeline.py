"""``quotahost pipeline``: the Spark pipeline, on this machine or as a line for spark-submit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Text = str | None
_KAFKA = "Properties file of Kafka's Java client: security.protocol, ssl.*, sasl.*"


def pipeline(
    bootstrap: Annotated[Text, typer.Option(help="bootstrap.servers of the cluster with the topics.")] = None,
    checkpoint: Annotated[Text, typer.Option(help="Directory of Spark's checkpoint.")] = None,
    master: Annotated[Text, typer.Option(help="Spark's master [default: local[2]].")] = None,
    print_submit: Annotated[bool, typer.Option(help="Print the spark-submit line, and end.")] = False,
    kafka_config: Annotated[Path | None, typer.Option(metavar="FILE", help=_KAFKA)] = None,
    cluster: Annotated[Text, typer.Option(help="Cluster of snapshots that don't name theirs.")] = None,
    snapshots_topic: Annotated[Text, typer.Option(help="Topics of snapshots, comma-separated.")] = None,
    cluster_volumes_topic: Annotated[Text, typer.Option(help="Topic to publish to.")] = None,
    refused_topic: Annotated[Text, typer.Option(help="Dead-letter topic.")] = None,
    usage_topic: Annotated[Text, typer.Option(help="Topic of usage by client.")] = None,
    shares_topic: Annotated[Text, typer.Option(help="Topic of shares of cluster quotas.")] = None,
    tick_topic: Annotated[Text, typer.Option(help="Topic by which time passes if nothing comes.")] = None,
    interval: Annotated[Text, typer.Option(help="Least time between batches [default: 50ms].")] = None,
    tick: Annotated[Text, typer.Option(help="How often to publish if nothing comes [default: 5s].")] = None,
    validity: Annotated[Text, typer.Option(help="How old a snapshot may be [default: 1m].")] = None,
    expiry: Annotated[Text, typer.Option(help="How long a silent broker is listed [default: 1d].")] = None,
    fill_window: Annotated[Text, typer.Option(help="How far a fill rate looks back [default: 1m].")] = None,
    batch: Annotated[int | None, typer.Option(help="Most records in a batch [default: 500000].")] = None,
    history: Annotated[Text, typer.Option(metavar="DIR", help="Keep every reading there as Parquet.")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="Port for Prometheus; off without.")] = None,
    metrics_address: Annotated[Text, typer.Option(help="Where it listens [default: 127.0.0.1].")] = None,
) -> None:
    """Run the pipeline that turns all brokers' snapshots into one record of each cluster.

    Every option can also be set in the environment, as QUOTAHOST_PIPELINE_BOOTSTRAP and so on; secrets belong into
    the file of --kafka-config or into QUOTAHOST_PIPELINE_KAFKA, a JSON object.
    """
    given = {name: value for name, value in locals().items() if name != "print_submit"}
    try:
        _run(given, print_submit)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("pyspark", "py4j", "pydantic_settings"):
            raise
        _end("the pipeline needs Spark: pip install 'quotahost[spark]'")


def _run(given: dict[str, object], print_submit: bool) -> None:
    from quotahost.pipeline import main
    from quotahost.pipeline.options import options
    from quotahost.pipeline.submit import submit_line

    chosen = options(**given)
    if print_submit:
        typer.echo(submit_line(chosen, chosen.master))
        return
    main.configure_logging()
    main.run(chosen)


def _end(problem: str) -> None:
    typer.echo(problem, err=True)
    raise typer.Exit(2)
