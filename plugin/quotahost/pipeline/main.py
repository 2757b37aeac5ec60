"""The pipeline as a program: ``spark-submit`` runs this file, ``quotahost pipeline`` calls ``run``.

It reads the options, waits until no other pipeline uses its directories, starts Spark and the metrics, and leaves the
rest to :class:`quotahost.pipeline.job.Job` until a signal ends it. :func:`submit_line` makes the line by which an
operator runs it on a cluster (``quotahost pipeline --print-submit``).
"""

from __future__ import annotations

import logging
import shlex
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Final

from quotahost.errors import QuotahostError
from quotahost.pipeline.job import Job
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options, OptionsError, as_text, option, options
from quotahost.pipeline.spark import places
from quotahost.pipeline.spark.places import Lock
from quotahost.pipeline.spark.session import DEFAULTS, POOLS, checkpoint_files, jars, path, quiet, session
from quotahost.text import EscapingFormatter

log = logging.getLogger("quotahost.pipeline")

_LOOK: Final = 1.0  # seconds between two looks for a directory that another pipeline uses


def run(chosen: Options) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        ConnectorError: the jars of Spark's Kafka connector are missing.
        PlaceError: a directory lies where the executors can't reach it.
        TopicError: a topic can't be used as it is.
        OSError: the port for the metrics is taken, or a directory can't be written to.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    progress = Progress()
    # Spark needs seconds to start, so a port that is taken ends the program before.
    if chosen.metrics_port is not None:
        progress.serve(chosen.metrics_port, chosen.metrics_address)
    directories = {"checkpoint": chosen.checkpoint} | ({"history": chosen.history} if chosen.history else {})
    if not wait_for([Lock(each) for each in directories.values()], progress, stop):
        return
    spark = session("quotahost", chosen.master, checkpoint_files(chosen.checkpoint))
    try:
        places.check(spark, directories)
        Job(spark, chosen, progress).run(stop)
    finally:
        spark.stop()


def wait_for(locks: Sequence[Lock], progress: Progress, stop: threading.Event) -> bool:
    """Stand by until no other pipeline uses these directories; whether they are locked, False after ``stop``.

    Two queries with one checkpoint would end each other for ever. The process keeps the locks until it ends.
    """
    logged = False
    while not stop.is_set():
        if all(lock.take() for lock in locks):
            return True
        if not logged:
            logged = True
            progress.stands_by()
            log.warning(
                "another pipeline uses the same --checkpoint or --history; this one stands by until that one ends. "
                "To let both run, give each directories of its own"
            )
        for lock in locks:
            lock.release()
        stop.wait(_LOOK)
    return False


def configure_logging() -> None:
    """Log to stderr, in lines like Kafka's own."""
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # Py4J logs every exception of a batch with whole Java stacks; the pipeline logs one line for it.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)


def submit_line(options: Options, master: str) -> str:
    """One command in several lines, without any secret, for a machine where this package is installed.

    Args:
        options: the pipeline's; those that differ from the defaults appear. ``kafka`` stays in the environment.
        master: Spark's master, such as ``spark://host:7077``.

    Raises:
        ConnectorError: the connector's jars are missing.
    """
    # ``kafka`` holds secrets: other users of the machine can read a process's arguments.
    given = options.model_dump(exclude_defaults=True, exclude={"kafka", "master"})
    parts = [
        ["spark-submit", "--master", master],
        ["--properties-file", str(path(DEFAULTS))],
        *(["--conf", f"{name}={value}"] for name, value in quiet().items()),
        ["--conf", f"spark.scheduler.allocation.file={path(POOLS).as_uri()}"],
        ["--jars", ",".join(map(str, jars()))],
        [str(path("main.py"))],
        *([option(name), as_text(value)] for name, value in given.items()),
    ]
    return " \\\n  ".join(map(shlex.join, parts))


def main(arguments: list[str]) -> int:
    """Run with options given as ``--name value`` pairs; returns the exit code."""
    names = [name.removeprefix("--").replace("-", "_") for name in arguments[::2]]
    try:
        chosen = options(**dict(zip(names, arguments[1::2], strict=True)))
    except (OptionsError, ValueError) as problem:  # the latter: a name without a value
        sys.stderr.write(f"{problem}\n")
        return 2
    configure_logging()
    try:
        run(chosen)
    except QuotahostError as problem:
        sys.stderr.write(f"{problem}\n")
        return problem.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
