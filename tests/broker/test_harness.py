"""No broker stays behind; all else of the harness is used, and so tested, by the tests of the product."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.java.jars import broker_jars
from harness.system.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.long]

SCRIPT = """
import pathlib, signal, sys
from harness.kafka.node import KafkaNode
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
with KafkaNode(pathlib.Path(sys.argv[1])) as node:
    print(node.pid, flush=True)
    signal.pause()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_broker_outlives_the_process_that_started_it(how: signal.Signals, tmp_path: Path) -> None:
    broker_jars()
    starter = subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    assert _is_alive(pid)
    os.kill(starter.pid, how)
    assert starter.wait(60) != 0
    eventually(lambda: not _is_alive(pid))


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
