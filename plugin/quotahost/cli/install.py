"""``quotahost install`` copies this package's jar into Kafka's folder ``libs``, and ``doctor`` reads the jars there.

The build writes the versions of quotahost and jpype1 into each jar, so ``doctor`` can check whether the jar fits.
"""

import shlex
import shutil
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import javaproperties
import typer

from quotahost.base.errors import QuotahostError
from quotahost.cli.console import say, whole, writing
from quotahost.cli.property_files import CALLBACK, CLASS
from quotahost.settings.declaration import PREFIX

_VERSIONS: Final = "META-INF/quotahost/versions.properties"
#: The command names a file, because no package index has our quotahost, and another project may take the name there.
REINSTALL: Final = "pip install --force-reinstall quotahost-VERSION-py3-none-any.whl"
_CARRIED: Final = Path(__file__).parents[1] / "_jar" / "quotahost.jar"


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of quotahost, with the versions of quotahost and jpype1 that it was built with."""

    path: Path
    quotahost: str
    jpype: str


def read_jar(path: Path) -> Jar | None:
    """Return the jar at this path; None if it isn't quotahost's, or no jar at all."""
    try:
        with zipfile.ZipFile(path) as archive:
            versions = javaproperties.loads(archive.read(_VERSIONS).decode("latin-1"))
        return Jar(path, versions["quotahost"], versions["jpype"])
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None


def jars_in(libs: Path) -> list[Jar]:
    """Return quotahost's jars in a folder; a jar counts by its contents, not only by its name."""
    return [jar for path in sorted(libs.glob("quotahost*.jar")) if (jar := read_jar(path))]


def carried_jar() -> Jar:
    """Return the jar inside this package. Raises QuotahostError if the package was built without a jar."""
    if jar := read_jar(_CARRIED):
        return jar
    raise QuotahostError(
        f"this quotahost was built without its jar; in a source tree run `make build`, otherwise {REINSTALL}"
    )


def install(
    kafka_home: Annotated[Path, typer.Option(metavar="DIR", help="The folder that Kafka was unpacked to.")],
) -> None:
    """Put quotahost's jar into a Kafka's libs folder and print the properties to add."""
    libs = kafka_home / "libs"
    if not libs.is_dir():
        raise QuotahostError(f"{kafka_home} has no folder libs; name the folder that Kafka was unpacked to")
    jar = carried_jar()
    with writing(libs):
        target = libs / f"quotahost-{jar.quotahost}.jar"
        # The older jars are removed last: if the copy fails, the broker keeps its jar. A running broker keeps its open
        # files, and uses the new jar after a restart.
        before = jars_in(libs)
        with whole(target) as copy:  # a classpath's wildcard (``libs/*``) doesn't match the copy's name
            shutil.copyfile(jar.path, copy)
        target.chmod(0o644)  # whatever the umask is, because the broker may run as another user
        for old in before:
            if old.path != target:
                old.path.unlink()
    say(f"Installed {target}")
    for old in before:
        say(f"  instead of {old.path.name} (quotahost {old.quotahost})")
    say("\nAdd to the broker's server.properties:\n")
    say(javaproperties.join_key_value(CALLBACK, CLASS))
    say(javaproperties.join_key_value(f"{PREFIX}python.executable", sys.executable))
    doctor = [str(Path(sys.executable).with_name("quotahost")), "doctor", "server.properties"]
    say(f"\nCheck before you restart the broker: {shlex.join([*doctor, '--kafka-home', str(kafka_home)])}")
