"""Measures what the task publish-usage costs inside the broker at each look, as the number of active clients grows.

The measurement itself is java/org/quotahost/table/UsageCost.java; it needs no broker.
"""

from __future__ import annotations

import subprocess

from bench.callback import class_path
from bench.markdown import machine_line, table

CLIENTS = (100, 1_000, 10_000, 20_000)


def main() -> str:
    """A Markdown table with a row for each number of clients."""
    _, path = class_path()
    command = ["java", "-cp", path, "org.quotahost.table.UsageCost", *map(str, CLIENTS)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = []
    for line in output.splitlines():
        clients, milliseconds, kilobytes = line.split()
        rows.append([f"{int(clients):,}", milliseconds, kilobytes])
    return table(["active clients", "ms of CPU time for a look", "kB allocated"], rows) + "\n\n" + machine_line()


if __name__ == "__main__":
    print(main())
