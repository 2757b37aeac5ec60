"""quotahost's jar: the one that the package carries, and those on a broker's classpath.

The build writes the versions of quotahost and jpype1 into each jar. By them a jar of quotahost's is recognised, and
``doctor`` sees whether it fits what is installed.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import javaproperties

from quotahost.errors import QuotahostError

_VERSIONS: Final = "META-INF/quotahost/versions.properties"


class NoJar(QuotahostError):
    """This quotahost was installed without its jar."""


@dataclass(frozen=True, slots=True)
class Jar:
    """A jar of quotahost's, and the versions of quotahost and jpype1 that it was built with."""

    path: Path
    quotahost: str
    jpype: str


def read_jar(path: Path) -> Jar | None:
    """The jar at this path; None if it isn't quotahost's, or no jar at all."""
    try:
        with zipfile.ZipFile(path) as archive:
            versions = javaproperties.loads(archive.read(_VERSIONS).decode("latin-1"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile):
        return None
    if not versions.get("quotahost"):
        return None
    return Jar(path, versions["quotahost"], versions.get("jpype", ""))


def jars_in(libs: Path) -> list[Jar]:
    """The jars of quotahost's in a folder; a name like theirs alone doesn't make one."""
    return [jar for path in sorted(libs.glob("quotahost*.jar")) if (jar := read_jar(path))]


@contextmanager
def carried_jar() -> Iterator[Jar]:
    """The jar inside this package, as a file for as long as the context lasts.

    Raises:
        NoJar: the package was built without it.
    """
    resource = files("quotahost") / "_jar" / "quotahost.jar"
    if not resource.is_file():
        raise NoJar(
            "this quotahost was built without its jar; in a source tree run `make build`, "
            "otherwise reinstall the wheel: pip install --force-reinstall quotahost"
        )
    # Java needs a path, and the package may be imported from a zip file.
    with as_file(resource) as path:
        jar = read_jar(path)
        if jar is None:
            raise NoJar(f"{path} is not quotahost's jar; run `make build` again")
        yield jar
