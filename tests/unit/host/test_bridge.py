"""Java's numbers on their way to the metrics endpoint."""

from __future__ import annotations

from quotahost.host.bridge import JavaShim
from quotahost.host.messages import Gauge


class JavaHost:
    """Shows three gauges, one fewer after each call: a plugin or a volume may go at any time."""

    def __init__(self) -> None:
        self.shown = [("Volume", name, "Capacity", capacity) for name, capacity in (("/a", 1e10), ("/b", 2.5))]
        self.shown.insert(0, ("Plugin", "mine", "Errors", 3.0))

    def gaugeReadings(self) -> list[str]:
        rows, self.shown = self.shown, self.shown[1:]
        return [str(field) for row in rows for field in row]


def test_every_number_stands_beside_its_own_name_while_gauges_come_and_go() -> None:
    shim = JavaShim.__new__(JavaShim)
    shim._host = JavaHost()
    assert shim.gauges() == [
        Gauge("Plugin", "mine", "Errors", 3.0), Gauge("Volume", "/a", "Capacity", 1e10),
        Gauge("Volume", "/b", "Capacity", 2.5),
    ]  # fmt: skip
