"""Runs the benches and prints their figures as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from bench import (
    broker,
    callback,
    child,
    logs,
    logs_way,
    names,
    newclients,
    pipeline,
    policies,
    refusal,
    report,
    scrape,
    sensors,
    shares,
    soak,
    sweep,
    topics,
    usage,
    windows,
)
from bench.disks import (
    cold,
    following,
    held,
    latency,
    lumps,
    picture,
    publishing,
    recovery,
    rolling,
    scope,
    stop,
    tap,
    throttle,
)

RUNS: Final[dict[str, Callable[[argparse.Namespace], str]]] = {
    "callback": lambda args: callback.report(callback.run()),
    "affected": lambda args: callback.report_affected(callback.run_affected()),
    "sensors": lambda args: sensors.main(),
    "newclients": lambda args: newclients.report(newclients.run()),
    "broker": lambda args: broker.pairs(args.pairs),
    "child": lambda args: child.main(args.pairs),
    "names": lambda args: "\n\n".join(names.main(scope) for scope in ("user", "client")),
    "flood": lambda args: broker.flood(args.clients),
    "logs": lambda args: f"{logs.main()}\n\n{logs_way.main()}",
    "refusal": lambda args: refusal.main(),
    "scrape": lambda args: scrape.main(),
    "sweep": lambda args: sweep.main(),
    "usage": lambda args: usage.main(),
    "topics": lambda args: topics.main(),
    "stop": lambda args: stop.main(),
    "latency": lambda args: latency.main(args.runs),
    "publishing": lambda args: publishing.main(),
    "picture": lambda args: picture.main(),
    "throttle": lambda args: throttle.main(),
    "policies": lambda args: policies.main(),
    "held": lambda args: held.main(),
    "lumps": lambda args: lumps.main(),
    "windows": lambda args: windows.main(),
    "tap": lambda args: tap.main(args.runs),
    "scope": lambda args: scope.main(),
    "following": lambda args: following.main(),
    "recovery": lambda args: recovery.main(args.runs),
    "rolling": lambda args: rolling.main(args.runs),
    "cold": lambda args: cold.main(args.runs),
    "pipeline": lambda args: pipeline.main(),
    "bytes": lambda args: pipeline.bytes_read(),
    "shares": lambda args: shares.main(),
    "report": lambda args: report.main(),
    "soak": lambda args: soak.main(args.minutes),
}
_BY_NAME_ONLY: Final = "soak"  # it takes an hour


def main() -> None:
    """Runs all benches but the soak, or those that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "which", nargs="*", choices=[*RUNS, []], default=[each for each in RUNS if each != _BY_NAME_ONLY]
    )
    parser.add_argument("--pairs", type=int, default=3, help="number of pairs of the benches broker and child")
    parser.add_argument("--clients", type=int, default=1_000_000, help="number of clients of the bench flood")
    parser.add_argument(
        "--runs", type=int, help="number of runs for each plugin of the benches tap, recovery, latency and rolling"
    )
    parser.add_argument("--minutes", type=float, default=60, help="how long the bench soak watches its brokers")
    args = parser.parse_args()
    for name in args.which:
        print(f"\n## {name}\n\n{RUNS[name](args)}", flush=True)


if __name__ == "__main__":
    main()
