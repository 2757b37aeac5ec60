"""The pipeline's program locks and checks its directories, starts Spark, and runs the job until a signal.

1. :func:`run` takes the options that the command has read, and starts the metrics.
2. The program waits until no other pipeline uses its directories (:func:`lock`): two queries with the same checkpoint
   would make each other fail forever.
3. The program starts Spark, and refuses directories that executors can't reach (:func:`refusal`).
4. The program runs :class:`quotahost.pipeline.job.Job` until SIGTERM or SIGINT.

:func:`submit_line` makes the command that runs the pipeline on a cluster (``quotahost pipeline --print-submit``).
"""

import fcntl
import logging
import shlex
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from quotahost.base.background import LoggedOnce, start_daemon
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

_LOOK: Final = 1.0  # seconds between two attempts to lock directories that another pipeline uses
# Readers of Parquet and of Spark's checkpoints ignore names that begin with an underscore.
_LOCK: Final = "_quotahost.lock"


def run(chosen: Options) -> None:
    """Run the pipeline until SIGTERM or SIGINT.

    Raises QuotahostError, with a message for an operator, if the pipeline can't start (a port is taken, jars are
    missing, a directory can't be written to or executors can't reach it, a topic can't be used, or the cluster doesn't
    answer) or if Spark ends by itself.
    """
    stop = threading.Event()
    _heed_signals(stop)
    progress = Progress()
    # Spark takes seconds to start, so the program finds out first whether the port is taken.
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
            _heed_signals(stop)  # a new SparkContext replaces the handler of SIGINT
            # Under spark-submit the master may differ from the option's.
            master, default = str(spark.sparkContext.master), str(hadoop(spark).get("fs.defaultFS"))
            for name, directory in directories.items():
                if problem := refusal(name, directory, master, default):
                    raise OptionsError(problem)
                with _in_words(f"--{name} {directory} can't be used", "name a file system for which Spark has the jar"):
                    file_system(spark, directory)
            remedy = "check the address, --kafka-config, and the rights of docs/security.md"
            with _in_words(f"--bootstrap {chosen.bootstrap} doesn't answer, or refuses this client", remedy):
                job = Job(spark, chosen, progress)
            job.run(stop)
    except QuotahostError:
        if not stop.is_set():  # errors during a stop are expected
            raise
    except (OSError, Py4JError) as error:
        # systemd signals the whole process group, so Spark's JVM may end before this process stops it.
        if not stop.is_set():
            remedy = "look above and in the kernel's log: if memory ran out, give more --driver-memory"
            raise QuotahostError(f"Spark has ended: {short(error)}; {remedy}; start the pipeline again") from None


def _heed_signals(stop: threading.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())


@contextmanager
def _in_words(problem: str, remedy: str) -> Iterator[None]:
    """Raise QuotahostError in place of an error of the operating system, of Py4J or of PySpark."""
    try:
        yield
    except (OSError, Py4JError, PySparkException) as error:  # PySpark converts some Java exceptions
        raise QuotahostError(f"{problem}: {short(error)}; {remedy}") from None


def refusal(name: str, directory: str, master: str, default: str) -> str:
    """Return why a directory doesn't suit the master, or "" if it does; ``default`` is Hadoop's default file system.

    A directory without a scheme lies in the default file system. If that file system is local and executors run on
    other machines, each executor writes its part to its own disk. If an executor is lost, Spark can't read the state.
    """
    if master.startswith("local") or urlsplit(directory).scheme or urlsplit(default).scheme not in ("", "file"):
        return ""
    return (
        f"--{name} {directory} is on this machine only, but the executors of {master} run elsewhere and must "
        f"reach it: give a URL such as hdfs://host/dir or s3a://bucket/dir, or file://{directory} if it is mounted "
        "on all machines under that path"
    )


def lock(directories: Iterable[str]) -> ExitStack | None:
    """Lock the directories until the returned stack is closed or this process ends; None if another process uses one.

    HDFS and object stores have no locks, so directories there aren't locked. Raises OSError if a directory can't be
    written to; OptionsError if a directory lies in a later one, or equals it: this process would wait for itself.
    """
    # Hadoop neither decodes %20 in a URL nor ends the path at #, so the path is used as it is.
    places = [Path(each.removeprefix("file:")).resolve() for each in filter(on_this_machine, directories)]
    for one, other in combinations(places, 2):
        if one.is_relative_to(other):
            raise OptionsError(f"--checkpoint is inside {other} of --history; give each a directory of its own")
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
    """Wait until no other pipeline uses these directories; return their locks, or None after ``stop``."""
    in_use, hangs = LoggedOnce(log), LoggedOnce(log)
    while not stop.is_set():
        attempt = Future[ExitStack | None]()
        # A disk that hangs keeps the thread that asks it, and the main thread must take signals.
        start_daemon("lock", partial(_settle, attempt, directories))
        while not wait([attempt], _LOOK).done:
            if stop.is_set():
                return None
            hangs.report("a disk hangs; the pipeline starts when it answers: %s", " or ".join(directories))
        if locks := attempt.result():
            progress.standing_by.set(0)
            return locks
        progress.standing_by.set(1)
        in_use.report(
            "another pipeline uses the same --checkpoint or --history; this one stands by until that one ends. "
            "To let both run, give each directories of its own"
        )
        stop.wait(_LOOK)
    return None


def _settle(attempt: Future[ExitStack | None], directories: Collection[str]) -> None:
    try:
        attempt.set_result(lock(directories))
    except Exception as problem:  # the main thread raises it
        attempt.set_exception(problem)


def configure_logging() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(EscapingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    # Py4J logs each exception of a batch with full Java stacks. The root logger logs each call to a JVM that has ended,
    # for example when systemd stops both processes. The pipeline logs one line instead.
    handler.addFilter(lambda record: not record.name.startswith(("py4j", "root")))
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def submit_line(options: Options) -> str:
    """Return the spark-submit command, in several lines, for a machine where this package is installed.

    The command has the options that differ from the defaults, and no secrets. Raises Unusable if the connector's jars
    are missing.
    """
    # ``kafka`` has secrets, and other users of the machine can read a process's arguments.
    given = options.model_dump(exclude={"kafka", "master"}, exclude_defaults=True)
    parts = [
        ["spark-submit", "--master", options.master],
        ["--properties-file", str(path(DEFAULTS))],
        # By default spark-submit runs the first python3 in PATH, which may lack this package.
        ["--conf", f"spark.pyspark.driver.python={sys.executable}"],
        *(["--conf", f"{name}={value}"] for name, value in quiet().items()),
        ["--conf", f"spark.scheduler.allocation.file={path(POOLS).as_uri()}"],
        ["--jars", ",".join(map(str, jars()))],
        [str(files("quotahost") / "cli/__main__.py"), "pipeline"],
        *([option(name), as_text(value)] for name, value in given.items()),
    ]
    return " \\\n  ".join(map(shlex.join, parts))
