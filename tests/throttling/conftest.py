"""Starts one JVM with Kafka's own classes and the broker's own tap for all tests."""

import subprocess
from collections.abc import Iterator

import pytest

from harness.plugin import ROOT
from tests.throttling.oracle import HERE, Oracle, compiled


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    sources = HERE / "ThrottlingOracle.java", ROOT / "java-shim/src/main/java/org/quotahost/table/Tap.java"
    command = compiled("org.quotahost.table.ThrottlingOracle", tmp_path_factory.mktemp("oracle"), *sources)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as process:
        yield Oracle(process)
