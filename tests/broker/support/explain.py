"""Runs ``quotahost explain`` as an operator does, and reads what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from harness.kafka.node import KafkaNode


def explain(*arguments: object) -> tuple[int, str]:
    """Exit code and output of the command, as from a pipe in the C locale."""
    command = [sys.executable, "-m", "quotahost.cli", "explain", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, timeout=180, env={**os.environ, "LC_ALL": "C"})
    return done.returncode, (done.stdout + done.stderr).decode()


def explain_client(node: KafkaNode, user: str, client_id: str, quota_type: str = "PRODUCE") -> tuple[int, str]:
    """The same for one client of one node, and for one quota type."""
    return explain("--pid", node.pid, "--user", user, "--client-id", client_id, "--type", quota_type)


def last_line(text: str) -> str:
    """The sentence that says what limits the client."""
    return text.strip().splitlines()[-1]


def field(text: str, label: str) -> str:
    """The value of a labelled fact, "" if there is none."""
    found = re.search(rf"^  {label}\s+(.*)$", text, re.MULTILINE)
    return found[1] if found else ""
