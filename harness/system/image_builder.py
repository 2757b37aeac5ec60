"""Builds what a Containerfile describes in a Debian root, without a container engine.

It runs the instructions one by one; layers, registries of images and limits of resources are not imitated.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from harness.system.containerfile import Instruction, NotUnderstood, expand, instructions
from harness.system.debian_root import copy_root
from harness.system.image import Image


class Builder:
    """Runs one Containerfile, from the images that are there already."""

    def __init__(self, context: Path, images: Mapping[str, Path], root: Path, arguments: Mapping[str, str]) -> None:
        self._context, self._images, self._arguments = context, images, arguments
        self._image = Image(root)
        self._stages: dict[str, Path] = {}
        self._values: dict[str, str] = {}
        self._global: dict[str, str] = {}

    def build(self, containerfile: Path) -> Image:
        """The image of its last stage. An earlier stage is only a name of an image, to be copied from.

        Raises:
            NotUnderstood: an instruction that this builder doesn't know.
            AssertionError: a RUN line failed.
        """
        steps = list(instructions(containerfile.read_text(encoding="utf-8")))
        last = max(index for index, step in enumerate(steps) if step.name == "FROM")
        for index, step in enumerate(steps):
            if index < last and step.name not in ("ARG", "FROM"):
                raise NotUnderstood(f"{step.name} in a stage before the last")
            getattr(self, f"_{step.name.lower()}")(step)
        return self._image

    def _arg(self, step: Instruction) -> None:
        name, _, default = step.text.partition("=")
        self._values[name] = self._arguments.get(name, expand(default, self._values))

    def _env(self, step: Instruction) -> None:
        name, _, value = step.text.partition("=")
        self._image.env[name] = self._values[name] = expand(value, self._values)

    def _from(self, step: Instruction) -> None:
        self._global = self._global or dict(self._values)
        image, _, stage = expand(step.text, self._global).partition(" AS ")
        self._values = {}  # a stage knows only its own arguments
        if stage:
            self._stages[stage] = self._images[image]
        else:
            copy_root(self._images[image], self._image.root)
            for name in ("hosts", "resolv.conf"):  # engines bring these two
                shutil.copyfile(f"/etc/{name}", self._image.root / "etc" / name)

    def _run(self, step: Instruction) -> None:
        # Arguments are variables of the shell, as in an engine; pip's settings are this machine's.
        before = self._image.env
        self._image.env = {**pip_settings(self._image.root), **self._values, **before}
        try:
            self._image.run(["bash", "-c", step.text])
        finally:
            self._image.env = before

    def _copy(self, step: Instruction) -> None:
        flags, (*sources, target) = step.flags()
        if not flags.keys() <= {"from", "chmod"}:
            raise NotUnderstood(f"COPY {step.text}")
        source = self._stages[flags["from"]] if "from" in flags else self._context
        into = self._image.root / expand(target, self._values).lstrip("/")
        for name in sources:
            found = sorted(source.glob(expand(name, self._values).lstrip("/")))
            assert found, f"COPY {name}: nothing there"
            for each in found:
                _copy(each, into, target.endswith("/"), flags.get("chmod"))

    def _user(self, step: Instruction) -> None:
        self._image.user = step.text

    def _workdir(self, step: Instruction) -> None:
        self._image.workdir = step.text
        (self._image.root / step.text.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _entrypoint(self, step: Instruction) -> None:
        self._image.entrypoint = step.exec_form()

    def _cmd(self, step: Instruction) -> None:
        self._image.command = step.exec_form()


def _copy(source: Path, target: Path, is_folder: bool, mode: str | None) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        return
    file = target / source.name if is_folder else target
    file.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, file)
    if mode:
        file.chmod(int(mode, 8))


def pip_settings(root: Path) -> dict[str, str]:
    """Variables by which pip inside trusts what this machine's pip trusts."""
    given = os.environ.get("PIP_CERT")
    if not given:
        return {}
    inside = root / "tmp/.trusted.pem"
    shutil.copyfile(given, inside)
    return {"PIP_CERT": "/tmp/.trusted.pem"}
