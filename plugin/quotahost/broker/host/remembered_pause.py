"""Remembers over a restart of the broker that disks of the cluster were full when it stopped.

A broker that starts looks at its own disks before it serves anybody, but learns from a topic how full those of other
brokers are, some seconds after it serves. Until then nobody is turned back: most brokers start in a cluster that has
room. But if the broker stopped in a PAUSE, it begins in that PAUSE, which holds for the same clients or topics. To know
that, it keeps a file in a log directory while the PAUSE lasts. Kafka reads only the directories there (its LogManager).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from quotahost.broker.host.scope import Scoped
from quotahost.model import Factor
from quotahost.model.volumes import Affected

log = logging.getLogger("quotahost.factor")

_MOST: Final = 8_000_000  # bytes of the file: 10,000 topics with the longest names and places


class _Stored(BaseModel):
    """The file, as JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cause: str
    places: dict[str, str] | None = None
    held: list[str] = []

    @classmethod
    def of(cls, pause: Scoped) -> _Stored:
        topics = pause.affected
        if topics is None:
            return cls(cause=pause.factor.cause)
        return cls(cause=pause.factor.cause, places=dict(topics.places), held=sorted(topics.held))

    def scoped(self) -> Scoped:
        affected = None if self.places is None else Affected(self.places, frozenset(self.held))
        return Scoped(Factor(0.0, f"full when this broker stopped: {self.cause}"), affected)


class PauseMemory:
    """The PAUSE of this moment, and that of the broker's life before this one.

    ``recall`` and ``keep`` are for the host thread and touch no disk. ``write`` is called on the disk monitor's thread
    after each of its looks, since a disk may hang.
    """

    FILE: ClassVar = "quotahost.paused"

    def __init__(self, directories: Sequence[str]) -> None:
        """Read what was kept in these log directories; with none, nothing outlives a restart.

        Kafka has read a file of each of them when it makes the callback, so none of them hangs.
        """
        self._files = [Path(directory, self.FILE) for directory in directories]
        self._before = next(filter(None, map(_read, self._files)), None)
        self._now: Scoped | None = None
        self._written: Scoped | None = self._before

    def recall(self) -> Scoped | None:
        """The PAUSE in which the broker stopped, None if it stopped in another state."""
        return self._before

    def keep(self, pause: Scoped | None) -> None:
        """The state is a PAUSE of known volumes; None: it isn't, and that is known."""
        self._now, self._before = pause, None

    def write(self) -> None:
        """Write down what was kept last, if that is new."""
        if self._before is not None or self._now == self._written:
            return
        self._written = pause = self._now
        try:
            for file in self._files:
                file.unlink(missing_ok=True)
            if pause and self._files:
                self._files[0].write_text(_Stored.of(pause).model_dump_json())
        except OSError as error:
            # On a full disk of this broker's own it isn't needed: the next start looks at that disk first.
            log.debug("the PAUSE can't be remembered: %s", error)


def _read(file: Path) -> Scoped | None:
    try:
        with file.open("rb") as opened:
            return _Stored.model_validate_json(opened.read(_MOST)).scoped()
    except (OSError, ValidationError, ValueError):
        return None
