"""What a Containerfile has made in a Debian root, and how it is run there without a container engine.

Commands run by ``chroot`` in namespaces of their own for mounts and processes; the network is this machine's.
"""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_MOUNTS: Final = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$@"'


@dataclass(slots=True)
class Image:
    """A root that instructions have been run in, and what they have set.

    Attributes:
        root: the folder that is ``/`` inside.
        env: variables of ENV.
        user: of USER; "" for root.
        workdir: of WORKDIR.
        entrypoint: of ENTRYPOINT and CMD.
    """

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = "/"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def command_line(self, *args: str) -> list[str]:
        """The words that start the image as an engine would: its entry point with these arguments, or those of CMD."""
        return self.inside([*self.entrypoint, *(args or self.command)])

    def inside(self, words: list[str], user: str | None = None) -> list[str]:
        """The words that run a command inside, as the image's user; all its processes end with it."""
        who = self.user if user is None else user
        within = ["env", "-i", f"PATH={_PATH}", "HOME=/tmp", *(f"{name}={value}" for name, value in self.env.items())]
        enter = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-c", _MOUNTS, str(self.root)]
        spec = [f"--userspec={who}:{who}"] if who and who != "root" else []
        return [*enter, *spec, str(self.root), *within, "sh", "-c", 'cd "$0" && exec "$@"', self.workdir, *words]

    def run(self, words: list[str], user: str | None = None, timeout: float = 600) -> str:
        """What a command inside prints.

        Raises:
            AssertionError: it failed; with its last lines.
        """
        done = subprocess.run(
            self.inside(words, user), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        assert done.returncode == 0, f"{words} failed:\n{(done.stdout + done.stderr)[-3000:]}"
        return done.stdout
