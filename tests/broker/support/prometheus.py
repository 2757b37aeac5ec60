"""A real Prometheus server, from Debian's package; where there is none a test says why it could not run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.system.debian import PackageMissing, debian_package
from harness.system.ports import free_port
from harness.system.process import LoggedProcess
from tests.skips import COULD_NOT_RUN


class Server(LoggedProcess):
    """A Prometheus with an empty database."""

    def __init__(self, files: Path, directory: Path, config: dict[str, Any]) -> None:
        """``files`` are those of the package; ``config`` is the server's configuration."""
        super().__init__(directory / "prometheus.log")
        file = directory / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [
            str(files / "usr/bin/prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]

    def start(self) -> None:
        """Starts it, or starts it again with its data, and waits until it answers."""
        self.launch_command(self._command, dict(os.environ))
        self.wait_for_log("Server is ready")


@cache
def _found() -> Path | str:
    """The files, or why there are none; asked once, as a machine without a network takes minutes to say no."""
    try:
        return debian_package("prometheus")
    except PackageMissing as reason:
        return str(reason)


def package() -> Path:
    """The files of Debian's package; the test that asks is skipped with the reason where there are none."""
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"{COULD_NOT_RUN}no Prometheus on this machine: {found}")
    return found


@contextmanager
def prometheus(directory: Path, config: dict[str, Any]) -> Iterator[Server]:
    """Runs a server that scrapes and evaluates twice a second, with this configuration besides."""
    often = {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
    made = Server(package(), directory, {"global": often} | config)
    made.start()
    try:
        yield made
    finally:
        made.kill()


def job(port: int, **more: Any) -> dict[str, Any]:
    """The part of a configuration that scrapes a port of this machine."""
    return {"job_name": "test", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} | more
