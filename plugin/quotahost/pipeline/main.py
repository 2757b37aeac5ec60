"""The pipeline as a program: ``spark-submit`` runs this file, ``quotahost pipeline`` calls ``run``.

It reads the options, starts Spark and the metrics, and leaves the rest to :class:`quotahost.pipeline.job.Job` until a
signal ends it.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading

from quotahost.pipeline.job import Job
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options, OptionsError, options
from quotahost.pipeline.spark.session import checkpoint_files, session
from quotahost.text import EscapingFormatter

log = logging.getLogger("quotahost.pipeline")


def run(chosen: Options) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        ConnectorError: the jars of Spark's Kafka connector are missing.
        OSError: the port for the metrics is taken.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    progress = Progress()
    # Spark needs seconds to start, so a port that is taken ends the program before.
    if chosen.metrics_port is not None:
        progress.serve(chosen.metrics_port, chosen.metrics_address)
    spark = session("quotahost", chosen.master, checkpoint_files(chosen.checkpoint))
    try:
        Job(spark, chosen, progress).run(stop)
    finally:
        spark.stop()


def configure_logging() -> None:
    """Log to stderr, in lines like Kafka's own."""
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Py4J logs every exception of a batch with whole Java stacks; the pipeline logs one line for it.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


def main(arguments: list[str]) -> int:
    """Run with options given as ``--name value`` pairs; returns the exit code."""
    names = [name.removeprefix("--").replace("-", "_") for name in arguments[::2]]
    try:
        chosen = options(**dict(zip(names, arguments[1::2], strict=True)))
    except (OptionsError, ValueError) as problem:  # the latter: a name without a value
        sys.stderr.write(f"{problem}\n")
        return 2
    configure_logging()
    run(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
