"""A factor source whose volumes a test fills: the file FILLING says how full each is, and of which topics."""

import os
import time
from pathlib import Path

from quotahost.api import Context
from quotahost.model import ClusterVolumes, Limit, LimitType, Volume

SOFT, HARD = Limit(LimitType.CONSUMED_BYTES, 100), Limit(LimitType.CONSUMED_BYTES, 200)


class Filling:
    """The file has a line for each volume: its name, the bytes consumed, and its topics, with a blank between.

    While it begins with "hang", so does the host.
    """

    def __init__(self, context: Context) -> None:
        self._file = Path(os.environ["FILLING"])

    def read(self) -> ClusterVolumes:
        while self._file.read_text().startswith("hang"):
            time.sleep(0.05)
        lines = [line.split() for line in self._file.read_text().splitlines()]
        return ClusterVolumes(
            tuple(
                Volume(
                    "3", name, capacity=1_000, consumed=int(consumed), soft=SOFT, hard=HARD, topics=frozenset(topics)
                )
                for name, consumed, *topics in lines
            )
        )
