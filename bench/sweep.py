"""Measures how long requests stall while a factor goes its whole way with many scopes, beside Kafka's own quotas.

The measurement itself is java/org/quotahost/FactorSweep.java; it needs no broker.
"""

from __future__ import annotations

import subprocess
from typing import Final

from bench.callback import class_path
from bench.markdown import machine_line, table

CLIENTS: Final = 50_000


def main() -> str:
    """A Markdown table: the longest stall of a request and its 99.99th percentile, for quotahost and Kafka alone."""
    _, path = class_path()
    rows = []
    for callback in ("quotahost", "kafka"):
        command = ["java", "-Xmx4g", "-cp", path, "org.quotahost.FactorSweep", callback, str(CLIENTS)]
        words = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        figures = dict(zip(words[2::2], words[3::2], strict=True))
        rows.append(
            [callback, figures["longest"], figures["p9999"], figures["changes"], figures["table-bytes-a-client"]]
        )
    header = [f"{CLIENTS:,} clients", "longest, ms", "99.99 %, ms", "changes of limits", "heap a client, bytes"]
    return table(header, rows) + "\n\n" + machine_line()


if __name__ == "__main__":
    print(main())
