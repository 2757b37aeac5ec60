"""The quotahost jar of this checkout, and the broker properties that load it.

Tests, the demo and the benches all start brokers with this jar, so its path, the prefix of its properties and the names
of its classes stand here once. ``make build`` writes the jar. The docstring of ``harness`` lists the other modules that
know quotahost.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
JAR: Final = ROOT / "dist/quotahost.jar"
PREFIX: Final = "client.quota.callback."
CALLBACK: Final = "org.quotahost.PythonQuotaCallback"
# The broker properties that install the fence, with no authorizer behind it.
FENCE: Final = {"authorizer.class.name": "org.quotahost.QuotaFence", f"{PREFIX}fence.authorizer": "none"}
# PROCESS=child in the environment: Python runs in a child process of the broker, and not in the broker's own.
PROCESS: Final = {"python.process": os.environ["PROCESS"]} if os.environ.get("PROCESS") else {}
IN_CHILD: Final = os.environ.get("PROCESS") == "child"
# The states that the gauge State of the bean QuotaTable shows as 0, 1 and 2.
STATES: Final = ("OPEN", "THROTTLE", "PAUSE")


def prefixed(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns broker properties from settings of quotahost, whose names have no prefix."""
    return {PREFIX + name: value for name, value in settings.items()}


def plugin_properties(settings: Mapping[str, str], callback: str = CALLBACK) -> dict[str, str]:
    """Returns broker properties that load the callback with this process's Python, and settings (without prefix)."""
    return prefixed({"class": callback, "python.executable": sys.executable, **PROCESS, **settings})
