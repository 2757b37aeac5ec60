"""quotahost's pipeline as a process of its own, as an operator starts it."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Final, Self
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from harness.system.process import LoggedProcess

_BEGINS: Final = re.compile(r"run (\d+) of cluster (\S+) begins")


class PipelineProcess(LoggedProcess):
    """``quotahost pipeline`` with a driver in this machine; can be started again after it ended."""

    def __init__(self, directory: Path, bootstrap: str, **options: object) -> None:
        """Nothing is started yet.

        Args:
            directory: for its log and its checkpoint.
            bootstrap: the cluster's ``bootstrap.servers``.
            options: of the command, with ``_`` for ``-``.
        """
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory / "pipeline.log")
        self._port = options.get("metrics_port")
        given = {"bootstrap": bootstrap, "checkpoint": directory / "checkpoint", **options}
        self._command = [sys.executable, "-m", "quotahost.cli", "pipeline"]
        for name, value in given.items():
            self._command += [f"--{name.replace('_', '-')}", str(value)]

    def launch(self) -> None:
        """Start it, without waiting for anything."""
        self.launch_command(self._command, dict(os.environ))

    def start(self, timeout: float = 180) -> int:
        """Start it and wait until it has taken its run; the run.

        Raises:
            TimeoutError: it did not within timeout seconds, or ended.
        """
        start = self.log.end()
        self.launch()
        found = _BEGINS.search(self.wait_for_log(_BEGINS.pattern, timeout, start))
        assert found is not None
        return int(found[1])

    def metric(self, name: str, **labels: str) -> float:
        """A number of its own, from ``metrics_port``; 0 while it shows none.

        Raises:
            OSError: it doesn't answer.
        """
        with urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10) as answer:
            for family in text_string_to_metric_families(answer.read().decode()):
                for sample in family.samples:
                    if sample.name == f"quotahost_pipeline_{name}" and sample.labels == labels:
                        return sample.value
        return 0.0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
