"""Measures the volumes that somebody who watches has opened. A part of the task ``publish-usage`` (``looks``)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from quotahost.api import Context
from quotahost.background import MINUTE
from quotahost.broker.disks.measured import measure
from quotahost.model import Volume
from quotahost.model.use import MeasuredVolume

BETWEEN: Final = 2.0  # seconds between the two looks at a volume
_REST: Final = 20  # the next is measured at least so many times as far away as listing the files takes


class OpenedVolumes:
    """Measures one volume after the other, each on a thread of its own: a disk that hangs holds up nothing else.

    A volume is measured once, as long as somebody asks for it; whoever asks again and again keeps no core busy.
    """

    def __init__(
        self,
        context: Context,
        sleep: Callable[[float], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Nobody has opened any yet. ``sleep`` stands in for the wait between two looks; ``clock`` in seconds."""
        self._context, self._clock, self._rest = context, clock, clock()
        self._closing = threading.Event()
        self._sleep = sleep or self._closing.wait
        self._lock = threading.Lock()
        self._found: dict[str, MeasuredVolume] = {}
        self._busy = False

    def of(self, names: Collection[str]) -> Sequence[MeasuredVolume]:
        """Those of these volumes that are measured; the others soon are. No call waits for a disk."""
        with self._lock:
            self._found = {name: found for name, found in self._found.items() if name in names}
            missing = [name for name in names if name not in self._found]
            if missing and not self._busy and self._clock() >= self._rest:
                self._busy = True
                self._context.start_thread("opened-volume", partial(self._run, missing[0]))
            return [self._found[name] for name in names if name in self._found]

    def close(self) -> None:
        """End the thread; one that hangs in a disk is left behind."""
        self._closing.set()

    def _run(self, name: str) -> None:
        began, found = self._clock(), None
        try:
            found = self._measured(name)
        finally:
            ended = self._clock()
            with self._lock:
                self._busy = False
                # A defect is logged by start_thread, not more often than once a minute.
                rest = _REST * max(0.0, ended - began - BETWEEN) if found is not None else MINUTE
                self._rest = ended + rest
                if found is not None:
                    self._found[name] = found

    def _measured(self, name: str) -> MeasuredVolume:
        node = str(self._context.node_id)
        disks = self._context.disks.latest()[1]
        directories = [place for place, on in disks.places if on == name] if disks else []
        try:
            return measure(name, node, directories, BETWEEN, self._sleep)[0]
        except OSError as error:
            return MeasuredVolume(Volume(node, name, 0, 0), directories, 0.0, 0.0, (), (str(error) or "it is gone",))
