"""Runs the benches and prints their figures as Markdown, for docs/benchmarks.md."""

import argparse
import sys
import traceback
from collections.abc import Callable
from typing import Final

from bench import broker, jvm, load, names, pipeline, policies, refusal, soak
from bench.disks import budget, latency, recovery, scope, stop, tap
from bench.markdown import machine_line

RUNS: Final[dict[str, Callable[[argparse.Namespace], str]]] = {
    "callback": lambda args: jvm.callback(),
    "affected": lambda args: jvm.affected(),
    "newclients": lambda args: jvm.newclients_table(),
    "sweep": lambda args: jvm.sweep(),
    "broker": lambda args: broker.pairs(args.pairs),
    "child": lambda args: broker.child(args.pairs),
    "flood": lambda args: broker.flood(args.clients),
    "names": lambda args: "\n\n".join(names.main(scope) for scope in ("user", "client")),
    "refusal": lambda args: refusal.main(),
    "stop": lambda args: stop.main(),
    "latency": lambda args: latency.main(args.runs),
    "recovery": lambda args: recovery.main(args.runs),
    "tap": lambda args: tap.main(args.runs),
    "scope": lambda args: scope.main(),
    "budget": lambda args: budget.main(),
    "load": lambda args: load.main(),
    "policies": lambda args: policies.main(),
    "pipeline": lambda args: pipeline.main(),
    "soak": lambda args: soak.main(args.minutes),
}
_BY_NAME_ONLY: Final = "soak"  # it takes an hour


def main() -> int:
    """Runs all benches except the soak, or those that the command line names; returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    usual = [name for name in RUNS if name != _BY_NAME_ONLY]
    # If none is named, argparse checks the empty list, too.
    parser.add_argument("which", nargs="*", choices=[*RUNS, []])
    parser.add_argument("--pairs", type=int, default=3, help="number of pairs of the benches broker and child")
    parser.add_argument("--clients", type=int, default=1_000_000, help="number of clients of the bench flood")
    parser.add_argument("--runs", type=int, help="number of runs for each plugin of tap, recovery and latency")
    parser.add_argument("--minutes", type=float, default=60, help="how long the bench soak watches its brokers")
    args = parser.parse_args()
    failed = False
    for name in args.which or usual:
        print(f"\n## {name}\n", flush=True)
        try:
            print(f"{RUNS[name](args)}\n\n{machine_line()}", flush=True)
        except Exception:  # the other benches still have figures
            traceback.print_exc()
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
