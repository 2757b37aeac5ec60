"""The quotahost before this one, built from the history, for scenes in which brokers are upgraded.

0.1.0 is the only version so far. In its place stands the commit before the records' field ``topics`` and the
properties ``factor.scope``, ``pause.resume.free-share`` and ``pause.creation``.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from harness.java.jars import BUILD, put_in_place
from harness.plugin import ROOT
from tests.skips import COULD_NOT_RUN

COMMIT: Final = "516f3d4"


class Build(NamedTuple):
    """A jar, and an interpreter in which the quotahost of the same version is installed."""

    jar: Path
    python: str


@cache
def older() -> Build:
    """The older one, built once into ``build/``; the test is skipped if this tree has not its history."""
    known = subprocess.run(["git", "-C", str(ROOT), "cat-file", "-e", f"{COMMIT}^{{tree}}"], check=False)
    if known.returncode != 0:
        pytest.skip(f"{COULD_NOT_RUN}commit {COMMIT}, which stands for the older version, is not in this clone")
    target = BUILD / "older" / COMMIT
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            fresh = Path(scratch, "fresh")
            _unpack(fresh)
            _build(fresh)
            put_in_place(fresh, target)
    return Build(target / "quotahost.jar", str(target / "venv/bin/python"))


def _unpack(into: Path) -> None:
    archive = subprocess.run(["git", "-C", str(ROOT), "archive", COMMIT], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(into / "tree", filter="data")


def _build(into: Path) -> None:
    """An environment of its own, since another version may need another jpype1, and the jar for it."""
    tree, python = into / "tree", into / "venv/bin/python"
    # The folder is moved when it is complete; only the scripts in venv/bin, which nobody calls, know where it was.
    subprocess.run([sys.executable, "-m", "venv", str(into / "venv")], check=True)
    for folder in ("plugin/quotahost/_jar", "plugin/quotahost/pipeline/spark/jars"):
        (tree / folder).mkdir(parents=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", str(tree)], check=True)
    # The attach libraries are those of this tree: their source is the same.
    shutil.copytree(BUILD / "jar-resources", tree / "build/jar-resources", copy_function=shutil.copy)
    subprocess.run([str(python), str(tree / "tools/jar_resources.py")], check=True)
    subprocess.run(["mvn", "-q", "-B", "-f", str(tree / "java-shim/pom.xml"), "-DskipTests", "package"], check=True)
    shutil.copy(tree / "java-shim/target/quotahost.jar", into / "quotahost.jar")
    shutil.rmtree(tree)
