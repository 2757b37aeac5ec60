"""Gets Kafka brokers and other Java artefacts with Maven, once, into ``build/``.

The harness runs real brokers of several versions. ``made_once`` keeps slowly made results for all test processes.
"""

import fcntl
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

DEFAULT_VERSION: Final = "4.3.1"
BUILD: Final = Path(__file__).resolve().parents[2] / "build"

_BROKER_POM: Final = Path(__file__).with_name("broker-pom.xml")
_ARTEFACT_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.quotahost.harness</groupId><artifactId>artefact</artifactId><version>1</version>
  <packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{more}
  </dependency></dependencies>
</project>
"""
# A jar beside the main one, like Kafka's tests: its user already has the artefact's own dependencies.
_CLASSIFIED: Final = """
    <classifier>{classifier}</classifier>
    <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""


class ResolveFailed(Exception):
    """Maven is missing, or it could not resolve an artefact; the message gives the reason."""


def broker_jars(version: str = DEFAULT_VERSION) -> Path:
    """Returns the directory with the jars of a Kafka broker, log4j 2 included.

    Raises:
        ResolveFailed: mvn is missing, or it failed.
    """
    return _resolve(BUILD / "kafka" / version, f"Kafka {version}", _BROKER_POM.read_text(), version)


def maven_jar(coordinates: str) -> Path:
    """Returns the directory with the jar of ``group:artifact:version`` and its runtime dependencies.

    With a classifier (``group:artifact:version:classifier``) the directory contains only that jar.

    Raises:
        ValueError: coordinates are not group:artifact:version, or with a classifier.
        ResolveFailed: mvn is missing, or it failed.
    """
    parts = coordinates.split(":")
    if len(parts) not in (3, 4) or not all(parts):
        raise ValueError(f"coordinates must be group:artifact:version, not {coordinates!r}")
    group, artifact, version, *classifier = map(escape, parts)
    more = _CLASSIFIED.format(classifier=classifier[0]) if classifier else ""
    pom = _ARTEFACT_POM.format(group=group, artifact=artifact, version=version, more=more)
    return _resolve(BUILD / "maven" / "_".join(parts), coordinates, pom)


def _resolve(target: Path, what: str, pom: str, kafka_version: str = "") -> Path:
    """Fills target/libs, unless it was filled from the same pom before."""
    kept = target / "pom.xml"
    if kept.is_file() and kept.read_text() != pom:
        shutil.rmtree(target, ignore_errors=True)

    def fill(fresh: Path) -> None:
        print(f"resolving {what} with Maven into {target} ...", file=sys.stderr, flush=True)
        (fresh / "libs").mkdir(parents=True)
        (fresh / "pom.xml").write_text(pom)
        _copy_dependencies(fresh, what, kafka_version)

    return made_once(target, fill) / "libs"


def _copy_dependencies(directory: Path, what: str, kafka_version: str) -> None:
    command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(directory / "pom.xml")]
    command += ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command += [f"-DoutputDirectory={directory / 'libs'}"]
    command += [f"-Dkafka.version={kafka_version}"] if kafka_version else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ResolveFailed(f"mvn is needed to get {what}: install Maven 3.8 or newer") from None
    if done.returncode != 0 or not any((directory / "libs").glob("*.jar")):
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise ResolveFailed(f"mvn could not resolve {what} (exit code {done.returncode}):\n{tail}")


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Returns the file or directory. The first process that needs it makes it at the given place; others wait."""
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=".making-") as scratch:
                    fresh = Path(scratch, "fresh")
                    make(fresh)
                    fresh.rename(target)  # moved only when it is complete
    return target
