"""quotahost's pipeline as a process of its own, started by the command that an operator uses.

The demo, the benches and the tests of the whole cluster run it. Its log says when it has begun, and its metrics
endpoint says how much it has read.
"""

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
    """``quotahost pipeline`` with its driver on this machine. It can be started again after it ended."""

    def __init__(self, directory: Path, bootstrap: str, **options: object) -> None:
        """Prepares the command; starts nothing yet.

        Args:
            directory: the place of its log and its checkpoint.
            bootstrap: the cluster's ``bootstrap.servers``.
            options: options of the command, with ``_`` for ``-``.
        """
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory / "pipeline.log")
        self._port = options.get("metrics_port")
        given = {"bootstrap": bootstrap, "checkpoint": directory / "checkpoint", **options}
        self._command = [sys.executable, "-m", "quotahost", "pipeline"]
        for name, value in given.items():
            self._command += [f"--{name.replace('_', '-')}", str(value)]

    def launch(self) -> None:
        """Starts the pipeline, without waiting for anything."""
        self.launch_command(self._command, dict(os.environ))

    def start(self, timeout: float = 180) -> int:
        """Starts the pipeline and waits until it logs that its run has begun; returns the run's id.

        Raises:
            TimeoutError: it did not begin within timeout seconds, or it ended.
        """
        start = self.log.end()
        self.launch()
        found = _BEGINS.search(self.wait_for_log(_BEGINS.pattern, timeout, start))
        assert found is not None
        return int(found[1])

    def metric(self, name: str, **labels: str) -> float:
        """Returns one metric, without the prefix ``quotahost_pipeline_``; 0 while the pipeline doesn't show it.

        The option ``metrics_port`` must be given.

        Raises:
            OSError: the endpoint doesn't answer.
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
