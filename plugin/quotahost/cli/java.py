"""The ``java`` with which the doctor looks at Kafka's jars."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from quotahost.errors import QuotahostError


class NoJava(QuotahostError):
    """There is no Java here."""


def java() -> str:
    """The ``java`` of JAVA_HOME, else of PATH.

    Raises:
        NoJava: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin"))) if home else None
    found = found or shutil.which("java")
    if found is None:
        raise NoJava("there is no java; set JAVA_HOME")
    return found
