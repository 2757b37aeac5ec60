"""No process that the harness has started outlives the one that started it, however that one ends."""

import signal
import subprocess
import sys

import pytest

from harness.system.process import command
from harness.system.waiting import eventually

SCRIPT = """
import signal
import time
from harness.system.guard import start_guarded
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs with SIGINT ignored
print(start_guarded(["sleep", "600"]).pid, flush=True)
while True:
    time.sleep(0.1)  # signal.pause() may begin after a signal has come and then waits for another
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_a_process_has_started_ends_with_it(how: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        try:
            eventually(lambda: command(pid))  # a process that is being started has no command yet
            starter.send_signal(how)
            assert starter.wait(60) != 0
        finally:
            starter.kill()
    eventually(lambda: not command(pid))
