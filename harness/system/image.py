"""Builds an image from a Containerfile in a Debian root, and runs it there, without a container engine.

``debian_root`` makes a minimal root with debootstrap, once, in ``build/``. ``instructions`` reads the part of the
Containerfile language that ``containers/`` uses, and refuses the rest, so that no test passes by leaving out a step.
``Builder`` runs the instructions one by one and makes an ``Image``, whose commands run with ``chroot`` in namespaces of
their own for mounts and processes; the network is this machine's. Layers, registries of images and limits of resources
are not imitated.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.java.jars import BUILD

_SOURCES: Final = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list")
KNOWN: Final = frozenset(["ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"])
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOUNTS: Final = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$@"'


class NoRoots(Exception):
    """This machine can't make or enter Debian roots; the message gives the reason."""


def debian_root(suite: str) -> Path:
    """Returns a minimal root of a Debian suite, made once by debootstrap from the mirror of this machine's apt.

    Raises:
        NoRoots: not root, no debootstrap, or no mirror.
    """
    target = BUILD / "roots" / suite
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        raise NoRoots("a Debian root needs the user root and debootstrap")
    if target.is_dir():
        return target
    fresh = target.with_name(f".making-{suite}-{os.getpid()}")
    fresh.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        ["debootstrap", "--variant=minbase", suite, str(fresh), _mirror()], capture_output=True, text=True, timeout=600
    )
    if done.returncode != 0:
        raise NoRoots(f"debootstrap failed: {(done.stdout + done.stderr)[-500:]}")
    fresh.rename(target)
    return target


def _mirror() -> str:
    for source in filter(Path.is_file, map(Path, _SOURCES)):
        found = re.search(r"^(?:URIs:|deb(?: \[.*?\])?) *(\S+/debian)/?\s", source.read_text(encoding="utf-8"), re.M)
        if found:
            return found[1]
    raise NoRoots(f"none of {', '.join(_SOURCES)} names a mirror of Debian")


def copy_root(source: Path, target: Path) -> None:
    """Copies a root with its owners and links."""
    target.mkdir(parents=True)
    subprocess.run(["cp", "-a", "--reflink=auto", f"{source}/.", str(target)], check=True, timeout=300)


class NotUnderstood(ValueError):
    """An instruction, or a form of one, that this reader doesn't know."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, and the rest of its lines joined by blanks."""

    name: str
    text: str

    def flags(self) -> tuple[dict[str, str], list[str]]:
        """Returns the leading ``--name=value`` words, and the words after them."""
        words, flags = self.text.split(), {}
        while words and words[0].startswith("--"):
            name, _, value = words.pop(0)[2:].partition("=")
            flags[name] = value
        return flags, words

    def exec_form(self) -> list[str]:
        """Returns the words of ENTRYPOINT or CMD, which must be in JSON's form.

        Raises:
            NotUnderstood: it is in the shell's form.
        """
        try:
            words = json.loads(self.text)
        except ValueError:
            raise NotUnderstood(f"{self.name} {self.text}: only the form [...] is known") from None
        return [str(word) for word in words]


def instructions(text: str) -> Iterator[Instruction]:
    """Yields all instructions of a Containerfile in order; comments and continued lines are resolved.

    Raises:
        NotUnderstood: an instruction is not in KNOWN.
    """
    # A comment may stand between continued lines, so comments go first.
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        if name not in KNOWN:
            raise NotUnderstood(f"{name} is none of {', '.join(sorted(KNOWN))}")
        yield Instruction(name, rest.strip())


def expand(text: str, values: Mapping[str, str]) -> str:
    """Returns the text with ``$NAME`` and ``${NAME}`` replaced; unset names are empty, as for a container engine."""
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), text)


@dataclass(slots=True)
class Image:
    """A root in which instructions have run, and the settings that they have made."""

    root: Path  # the folder that is ``/`` inside
    env: dict[str, str] = field(default_factory=dict)  # the variables of ENV
    user: str = ""  # USER; "" for root
    workdir: str = "/"  # WORKDIR
    entrypoint: list[str] = field(default_factory=list)  # ENTRYPOINT and CMD
    command: list[str] = field(default_factory=list)

    def command_line(self, *args: str) -> list[str]:
        """Returns the words that start the image as an engine would: its entry point with these arguments, or CMD's."""
        return self.inside([*self.entrypoint, *(args or self.command)])

    def inside(self, words: list[str], user: str | None = None) -> list[str]:
        """Returns the words that run a command inside, as the image's user; all its processes end with it."""
        who = self.user if user is None else user
        within = ["env", "-i", f"PATH={_PATH}", "HOME=/tmp", *(f"{name}={value}" for name, value in self.env.items())]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _MOUNTS, str(self.root)]
        spec = [f"--userspec={who}:{who}"] if who and who != "root" else []
        return [*enter, *spec, str(self.root), *within, "sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *words]

    def run(self, words: list[str], user: str | None = None, timeout: float = 600) -> str:
        """Returns the output of a command that runs inside.

        Raises:
            AssertionError: the command failed; the message has its last lines.
        """
        done = subprocess.run(
            self.inside(words, user), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"{words} failed:\n{(done.stdout + done.stderr)[-3000:]}"
        return done.stdout


class Builder:
    """Runs one Containerfile, from the existing images."""

    def __init__(self, context: Path, images: Mapping[str, Path], root: Path, arguments: Mapping[str, str]) -> None:
        self._context, self._images, self._arguments = context, images, arguments
        self._image = Image(root)
        self._stages: dict[str, Path] = {}
        self._values: dict[str, str] = {}
        self._global: dict[str, str] = {}

    def build(self, containerfile: Path) -> Image:
        """Returns the image of the last stage. An earlier stage is only a name of an image, to copy from.

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
            for name in ("hosts", "resolv.conf"):  # engines provide these two files
                shutil.copyfile(f"/etc/{name}", self._image.root / "etc" / name)

    def _run(self, step: Instruction) -> None:
        # Arguments are variables of the shell, as in an engine. pip's settings are this machine's.
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
    """Returns variables that make pip inside trust what this machine's pip trusts."""
    given = os.environ.get("PIP_CERT")
    if not given:
        return {}
    inside = root / "tmp/.trusted.pem"
    shutil.copyfile(given, inside)
    return {"PIP_CERT": "/tmp/.trusted.pem"}
