"""Archives the classes that a broker loads (Java's class data sharing).

A broker that starts from the archive needs half the time. ``KafkaNode`` asks for the archive at each start; the first
start for a Kafka version and a JVM makes the archive.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

from harness.java.jars import BUILD, broker_jars, made_once
from harness.java.jdk import program


def kafka_archive(version: str, run_once: Callable[[Path, str], None]) -> Path:
    """Returns the file for ``-XX:SharedArchiveFile``; makes it on the first call for this Kafka and this JVM.

    Args:
        version: Kafka's version.
        run_once: starts and stops a node in the given directory, with the given further option of ``java``.
    """
    # Java takes an archive only if it was made by the same JVM from the same jars.
    made_of = [Path(program("java")).resolve(), broker_jars(version).resolve()]
    key = repr([(str(path), path.stat().st_mtime_ns) for path in made_of])
    name = f"kafka-{version}-{hashlib.sha256(key.encode()).hexdigest()[:8]}.jsa"
    archive = BUILD / "harness" / "cds" / name

    def make(fresh: Path) -> None:
        print(f"archiving the classes of Kafka {version} into {archive} ...", file=sys.stderr, flush=True)
        run_once(fresh.parent / "node", f"-XX:ArchiveClassesAtExit={fresh}")

    return made_once(archive, make)
