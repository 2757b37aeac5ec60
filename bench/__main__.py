"""Prints every figure as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from bench import broker, callback, newclients, pipeline, report
from bench.disks import latency, picture, publishing, recovery, stop, throttle

RUNS: Final[dict[str, Callable[[argparse.Namespace], str]]] = {
    "callback": lambda given: callback.report(callback.run()),
    "newclients": lambda given: newclients.report(newclients.run()),
    "broker": lambda given: broker.pairs(given.pairs),
    "flood": lambda given: broker.flood(given.clients),
    "stop": lambda given: stop.main(),
    "latency": lambda given: latency.main(given.runs),
    "publishing": lambda given: publishing.main(),
    "picture": lambda given: picture.main(),
    "throttle": lambda given: throttle.main(),
    "recovery": lambda given: recovery.main(given.runs),
    "pipeline": lambda given: pipeline.main(),
    "bytes": lambda given: pipeline.bytes_read(),
    "report": lambda given: report.main(),
}


def main() -> None:
    """All of them, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("which", nargs="*", choices=[*RUNS, []], default=list(RUNS))
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1_000_000, help="of the flood")
    parser.add_argument("--runs", type=int, help="of recovery and latency, of each plugin")
    given = parser.parse_args()
    for name in given.which:
        print(f"\n## {name}\n\n{RUNS[name](given)}", flush=True)


if __name__ == "__main__":
    main()
