"""Makes the tables of docs/clients.md from the measurements that ``make test-clients`` has stored in build/clients."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.clients.libraries import INSTALLED, LIBRARIES, RIDES

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs/clients.md"
_BEGIN, _END = "<!-- clients -->", "<!-- /clients -->"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a ride through a PAUSE; times are in seconds."""

    library: str
    settings: str
    version: str
    sent: int
    acked: int
    failed: int
    lost: int  # acknowledged, and not in the topic
    written_though_failed: int
    duplicates: int
    out_of_order: int
    first_failure: float | None  # after the PAUSE began
    back: float | None  # after it ended


def keep(name: str, measured: object) -> None:
    """Stores a test's measurements for the tables."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    (INSTALLED / f"{name}.json").write_text(json.dumps(measured, indent=1))


def _kept(name: str) -> Any:
    return json.loads((INSTALLED / f"{name}.json").read_text())


def _pauses() -> str:
    short, long = (
        {(row["library"], row["settings"]): Outcome(**row) for row in _kept(f"pause-{seconds}")} for seconds in (20, 60)
    )
    head = [
        "| library | settings | PAUSE of 20 s | of 60 s | what the application sees | first ack after the release, s |",
        "|---|---|---|---|---|---|",
    ]
    rows = []
    for ride in RIDES:
        if (key := (ride.library.name, ride.settings)) in long:
            name = f"{ride.library.name.rpartition(' ')[0] or ride.library.name} {long[key].version}"
            backs = ", ".join(f"{outcome.back:.1f}" for outcome in (short[key], long[key]))
            through = f"{_through(short[key])} | {_through(long[key])}"
            rows.append(f"| {name} | {ride.words} | {through} | {ride.sees} | {backs} |")
    return "\n".join(head + rows)


def _through(outcome: Outcome) -> str:
    if outcome.first_failure is not None:
        return f"**gives up** after {outcome.first_failure:.1f} s: {outcome.failed:,} of {outcome.sent:,} records"
    disorder = f", {outcome.out_of_order:,} of {outcome.acked:,} records before an earlier one"
    return f"rides through{disorder if outcome.out_of_order else ''}"


def _libraries() -> str:
    rates, refusals = _kept("throttle"), _kept("refused")  # by library
    head = [
        "| library | THROTTLE at a limit of 500 kB/s: kB/s | what its admin says of a refused topic |",
        3 * "|---" + "|",
    ]
    names = [library.name for library in LIBRARIES if library.name in rates and library.name in refusals]
    return "\n".join(head + [f"| {name} | {rates[name]} | {refusals[name]} |" for name in names])


def main() -> None:
    """Puts the tables into the document."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(f"{_BEGIN}\n")
    after = rest.partition(f"{_END}\n")[2]
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{_pauses()}\n\n{_libraries()}\n{_END}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
