"""The pipeline as a program: its start, the lock by which a second one waits, unfit directories, ``--print-submit``.

1. It reads the options, and starts the metrics.
2. It waits until no other pipeline uses its directories (:func:`lock`): two queries with one checkpoint would end each
   other for ever.
3. It starts Spark, and refuses directories that executors couldn't reach (:func:`refusal`).
4. It leaves the rest to :class:`quotahost.pipeline.job.Job` until a signal ends it.

:func:`submit_line` makes the line by which an operator runs it on a cluster (``quotahost pipeline --print-submit``).
"""

import fcntl
import logging
import shlex
import signal
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from quotahost.base.background import LoggedOnce
from quotahost.base.errors import QuotahostError
from quotahost.base.text import EscapingFormatter, short
from quotahost.pipeline import log
from quotahost.pipeline.history import PARTS, folder
from quotahost.pipeline.job import Job
from quotahost.pipeline.monitoring import Progress
from quotahost.pipeline.options import Options, OptionsError, as_text, option
from quotahost.pipeline.session import (
    DEFAULTS,
    POOLS,
    checkpoint_files,
    file_system,
    hadoop,
    jars,
    on_this_machine,
    path,
    quiet,
    session,
)

_LOOK: Final = 1.0  # seconds between two looks for a directory that another pipeline uses
# Readers of Parquet and Spark's checkpoints leave out names that begin so.
_LOCK: Final = "_quotahost.lock"


def run(chosen: Options) -> None:
    """Run until SIGTERM or SIGINT.

    Raises QuotahostError, in words for an operator, if it can't begin: a port is taken, jars are missing, a directory
    can't be written to or executors can't reach it, a topic can't be used, or the cluster doesn't answer; and if Spark
    ends by itself.
    """
    stop = threading.Event()
    _heed_signals(stop)
    progress = Progress()
    # Spark needs seconds to start, so a port that is taken ends the program before.
    if chosen.metrics_port is not None:
        place = f"--metrics-port {chosen.metrics_port} on --metrics-address {chosen.metrics_address}"
        with _in_words(f"{place} can't be used", "name a free one of this machine"):
            progress.serve(chosen.metrics_port, chosen.metrics_address)
    directories = {"checkpoint": chosen.checkpoint} | ({"history": chosen.history} if chosen.history else {})
    places = [chosen.checkpoint, *(folder(chosen.history, part) for part in PARTS if chosen.history)]
    with _in_words(f"--{' or --'.join(directories)} can't be written to", "name a directory of this process's user"):
        locks = wait_for(places, progress, stop)
    if locks is None:
        return
    try:
        with locks, session("quotahost", chosen.master, checkpoint_files(chosen.checkpoint)) as spark:
            _heed_signals(stop)  # a SparkContext takes SIGINT for itself when it is made
            # Under spark-submit the master need not be the option's.
            master, default = str(spark.sparkContext.master), str(hadoop(spark).get("fs.defaultFS"))
            for name, directory in directories.items():
                if problem := refusal(name, directory, master, default):
                    raise OptionsError(problem)
                with _in_words(f"--{name} {directory} can't be used", "name a file system of which Spark has the jar"):
                    file_system(spark, directory)
            remedy = "look at the address, at --kafka-config, and at the rights of docs/security.md"
            with _in_words(f"--bootstrap {chosen.bootstrap} doesn't answer, or refuses this client", remedy):
                job = Job(spark, chosen, progress)
            job.run(stop)
    except QuotahostError:
        if not stop.is_set():  # what a stop interrupts is no fault
            raise
    except (OSError, Py4JError) as error:
        # A signal to a whole group, as systemd sends it, has ended Spark's JVM before it could be asked to end.
        if not stop.is_set():
            remedy = "see above, and in the kernel's log, whether memory ran out, and then give more --driver-memory"
            raise QuotahostError(f"Spark has ended: {short(error)}; {remedy}; start the pipeline again") from None


def _heed_signals(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


@contextmanager
def _in_words(problem: str, remedy: str) -> Iterator[None]:
    """Say what is wrong where the system, or a client of Java's, has an error."""
    try:
        yield
    except (OSError, Py4JError, PySparkException) as error:  # PySpark has exceptions of its own for some of Java's
        raise QuotahostError(f"{problem}: {short(error)}; {remedy}") from None


def refusal(name: str, directory: str, master: str, default: str) -> str:
    """Why a directory doesn't suit the master, "" if it does; ``default`` is Hadoop's default file system.

    Without a scheme it lies on this machine alone. Where executors run elsewhere, each would write its part to a disk
    of its own: after one is lost or replaced, the state can't be read.
    """
    if master.startswith("local") or urlsplit(directory).scheme or urlsplit(default).scheme not in ("", "file"):
        return ""
    return (
        f"--{name} {directory} lies on this machine alone, but the executors of {master} run elsewhere and must "
        f"reach it: give a URL such as hdfs://host/dir or s3a://bucket/dir, or file://{directory} if it is mounted "
        "on all machines under that path"
    )


def lock(directories: Iterable[str]) -> ExitStack | None:
    """Lock directories for this process until the result is closed or the process ends; None if another uses one.

    HDFS and object stores know no locks, so nothing is locked there. Raises OSError if one can't be written to,
    OptionsError if one lies in a later one, or is it: this process would wait for itself.
    """
    # As Hadoop reads a URL: it takes no %20 for a blank, and no # for an end.
    places = [Path(each.removeprefix("file:")).resolve() for each in filter(on_this_machine, directories)]
    for one, other in combinations(places, 2):
        if one.is_relative_to(other):
            raise OptionsError(f"--checkpoint lies in {other} of --history; give each a directory of its own")
    with ExitStack() as locks:
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            file = locks.enter_context((place / _LOCK).open("a"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return None
        return locks.pop_all()


def wait_for(directories: Collection[str], progress: Progress, stop: threading.Event) -> ExitStack | None:
    """Stand by until no other pipeline uses these directories; their locks, or None after ``stop``."""
    in_use = LoggedOnce(log)
    while not stop.is_set():
        if locks := lock(directories):
            progress.standing_by.set(0)
            return locks
        progress.standing_by.set(1)
        in_use.report(
            "another pipeline uses the same --checkpoint or --history; this one stands by until that one ends. "
            "To let both run, give each directories of its own"
        )
        stop.wait(_LOOK)
    return None


def configure_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # Py4J logs every exception of a batch with whole Java stacks, and by the root logger each call to a JVM that has
    # ended, as where systemd stops both; the pipeline logs one line for it.
    handler.addFilter(lambda record: not record.name.startswith(("py4j", "root")))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def submit_line(options: Options) -> str:
    """One command in several lines, for a machine where this package is installed.

    It has the options that differ from the defaults, no secret. Raises Unusable if the connector's jars are missing.
    """
    # ``kafka`` holds secrets: other users of the machine can read a process's arguments.
    given = options.model_dump(exclude={"kafka", "master"}, exclude_defaults=True)
    parts = [
        ["spark-submit", "--master", options.master],
        ["--properties-file", str(path(DEFAULTS))],
        *(["--conf", f"{name}={value}"] for name, value in quiet().items()),
        ["--conf", f"spark.scheduler.allocation.file={path(POOLS).as_uri()}"],
        ["--jars", ",".join(map(str, jars()))],
        [str(files("quotahost") / "cli/__main__.py"), "pipeline"],
        *([option(name), as_text(value)] for name, value in given.items()),
    ]
    return " \\\n  ".join(map(shlex.join, parts))
