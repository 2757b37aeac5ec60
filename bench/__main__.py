"""Prints every figure as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

import argparse

from bench import broker, callback, newclients, stop


def main() -> None:
    """All of them, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1_000_000, help="of the flood")
    runs = {
        "callback": lambda: callback.report(callback.run()),
        "newclients": lambda: newclients.report(newclients.run()),
        "broker": lambda: broker.pairs(given.pairs),
        "flood": lambda: broker.flood(given.clients),
        "stop": stop.main,
    }
    parser.add_argument("which", nargs="*", choices=[*runs, []], default=list(runs))
    given = parser.parse_args()
    for name in given.which:
        print(f"\n## {name}\n\n{runs[name]()}", flush=True)


if __name__ == "__main__":
    main()
