"""No process that the harness has started outlives the one that started it, even if that one is killed."""

import subprocess
import sys

from harness.system.process import command
from harness.system.waiting import eventually

SCRIPT = """
import time
from harness.system.guard import start_guarded
print(start_guarded(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""


def test_what_a_process_has_started_ends_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        try:
            eventually(lambda: command(pid))  # a process that is being started has no command yet
        finally:
            starter.kill()
    eventually(lambda: not command(pid))
