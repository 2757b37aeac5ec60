"""Whether the interpreter will do inside a broker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from quotahost.cli.interpreter import Interpreter
from quotahost.cli.report import Level, Section
from quotahost.properties import PREFIX

_OLDEST: Final = (3, 11)
_OURS: Final = f"{PREFIX}python.executable={sys.executable}"


def check_python(found: Interpreter) -> Section:
    """Version, build, shared library, and what is installed there."""
    section = Section("Interpreter")
    named = "" if found.asked == found.executable else f" (as {found.asked})"
    section.add(Level.GOOD, f"{found.executable}{named}")
    if not Path(found.asked).is_absolute():
        section.add(
            Level.WEAK,
            f"{found.asked!r} is looked up on the broker's PATH, which may be another than this shell's",
            f"{PREFIX}python.executable={found.executable}",
        )
    _check_version(section, found)
    if not section.is_wrong:
        _check_libpython(section, found)
        _check_packages(section, found)
    return section


def _check_version(section: Section, found: Interpreter) -> None:
    version = tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit())
    if version < _OLDEST:
        section.add(Level.WRONG, f"Python {found.version}; 3.11 or newer is needed", f"for example {_OURS}")
    elif found.is_free_threaded:
        what = f"Python {found.version} is a free-threaded build, which JPype does not support"
        section.add(Level.WRONG, what, "name an ordinary build of Python")
    else:
        section.add(Level.GOOD, f"Python {found.version}")


def _check_libpython(section: Section, found: Interpreter) -> None:
    config = ", ".join(found.config)
    if found.libpython:
        section.add(Level.GOOD, f"shared libpython: {found.libpython} ({config})")
        return
    minor = ".".join(found.version.split(".")[:2])
    section.add(
        Level.WRONG,
        f"no shared libpython found ({config})",
        f"Debian, Ubuntu: apt install libpython{minor}; pyenv: PYTHON_CONFIGURE_OPTS=--enable-shared pyenv "
        f"install --force {found.version}; or name a Python of uv's or conda's, which have one",
    )


def _check_packages(section: Section, found: Interpreter) -> None:
    """That both are there; whether they fit the jar is the jar's section."""
    install = f"{found.executable} -m pip install quotahost"
    if found.prefix != sys.prefix:
        install += f"; or, for the one that runs this doctor, {_OURS}"
    for name, version in (("quotahost", found.quotahost), ("jpype1", found.jpype)):
        if version:
            section.add(Level.GOOD, f"{name} {version}")
        else:
            section.add(Level.WRONG, f"{name} is not installed there", install)
