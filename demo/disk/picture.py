"""Shows the disk part: a live table while it plays, then its findings and a picture.

The picture has the used bytes against the limits above, the throughput below, the service that fills the disk at the
bottom, and the state as background.
"""

from pathlib import Path
from typing import Any, Final

from matplotlib import pyplot
from rich.console import Group
from rich.table import Table
from rich.text import Text

from demo.disk.acts import ELSEWHERE, USERS, Recording, Sample
from demo.disk.broker import QUOTA, WINDOW
from demo.pictures import save, tidy

BAR: Final = 40
COLOURS: Final = {"blue": "#1f77b4", "green": "#2ca02c", "purple": "#8e44ad", "service": "#7f7f7f"}
NAMES: Final = {ELSEWHERE: "purple, to another disk", "service": "service, exempt"}
STYLES: Final = {"OPEN": "green", "THROTTLE": "yellow", "PAUSE": "red"}


def live(recording: Recording, caption: str) -> Group:
    """The newest sample as a table under the caption, with the rates below it."""
    sample = recording.samples[-1]
    table = Table(title=caption, title_justify="left")
    for column in ("volume", "", "to soft", "to hard", "factor", "state", "turned back"):
        table.add_column(column)
    table.add_row(
        f"{sample.consumed / 1e6:,.0f} MB",
        _bar(recording, sample),
        f"{(recording.soft - sample.consumed) / 1e6:,.0f} MB",
        f"{(recording.hard - sample.consumed) / 1e6:,.0f} MB",
        f"{sample.factor:.2f}",
        Text(sample.state, style=STYLES[sample.state]),
        f"{sample.rejections:,.0f} requests",
    )
    rates = ", ".join(f"{user} {rate / 1e6:.1f} MB/s" for user, rate in sample.rates.items())
    return Group(table, Text(rates))


def _bar(recording: Recording, sample: Sample) -> Text:
    start = recording.samples[0].consumed
    share = (sample.consumed - start) / max(1, recording.hard - start)
    return Text("█" * max(0, min(BAR, round(BAR * share))), style=STYLES[sample.state])


def findings(recording: Recording) -> list[tuple[str, bool]]:
    """Sentences about what the recording shows, each with whether it is as it should be."""
    paused, freed, opened = recording.paused_at, recording.freed_at, recording.open_at
    findings = [("above the soft limit, producers were slowed", recording.throttled)]
    findings.append(("at the hard limit, they were stopped", paused is not None))
    appended = recording.appended_while_paused()
    findings.append((f"while they were stopped, {max(0, appended):,} of their bytes were appended", appended == 0))
    if freed is not None and opened is not None:
        back = next((s.at for s in recording.samples if s.at >= opened and sum(_limited_rates(s)) > 0), None)
        findings.append((f"{opened - freed:.1f} s after the topic was deleted, the state was OPEN again", True))
        findings.append((f"{(back or 0) - opened:.1f} s later, they produced again", back is not None))
    if recording.two_volumes:
        share = recording.share_elsewhere()
        findings.append(
            (f"{ELSEWHERE}, which writes to another disk, got {share:.0%} of its rate meanwhile", share > 0.9)
        )
    return findings


def _limited_rates(sample: Sample) -> list[float]:
    return [sample.rates[user] for user in USERS]


def draw(recording: Recording, file: Path) -> None:
    """Draws the picture into a PNG file."""
    figure, every = pyplot.subplots(3, figsize=(10, 7), sharex=True, layout="constrained", height_ratios=(3, 4, 1))
    above, middle, below = every
    times = [sample.at for sample in recording.samples]
    above.plot(times, [sample.consumed / 1e6 for sample in recording.samples], color="#333333", label="consumed")
    for level, name, colour in ((recording.soft, "soft limit", "#e6a700"), (recording.hard, "hard limit", "#c0392b")):
        above.axhline(level / 1e6, color=colour, linestyle="dashed", linewidth=1, label=name)
    factors = [QUOTA * sample.factor / 1e6 for sample in recording.samples]
    middle.plot(times, factors, color="#333333", linestyle="dotted", linewidth=1, label="quota x factor")
    for user, colour in COLOURS.items():
        rates = [sample.rates.get(user, 0) / 1e6 for sample in recording.samples]
        (below if user == "service" else middle).plot(times, rates, color=colour, label=NAMES.get(user, user))
    for axes in every:
        _states(axes, recording)
    tidy(every)
    above.set(ylabel="MB", title="A disk that fills: used bytes against its limits, and throughput")
    middle.set(ylabel=f"MB/s, mean of the last {WINDOW:.0f} s", ylim=(0, None))
    below.set(xlabel="seconds", ylabel="MB/s", ylim=(0, None))
    save(figure, file)


def _states(axes: Any, recording: Recording) -> None:
    colours = {"THROTTLE": "#e6a700", "PAUSE": "#c0392b"}
    for one, other in zip(recording.samples, recording.samples[1:], strict=False):
        if one.state in colours:
            axes.axvspan(one.at, other.at, color=colours[one.state], alpha=0.12, linewidth=0)
