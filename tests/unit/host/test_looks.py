"""What plugins see of the broker in one look, of the lines that the Java half answers with."""

from __future__ import annotations

import pytest

from quotahost.host.broker import HostBroker
from quotahost.host.looks import parse
from quotahost.host.messages import Gauge
from quotahost.model import Client, State, VolumeUse
from quotahost.settings.broker import Settings
from tests.fakes.shim import FakeShim
from tests.unit.cli.top.uses import use

LINES = [
    "broker\t42\t1",
    "state\tstate\tTHROTTLE", "state\tfactor\t0.5", "state\tlimit-factor\t0.7", "state\tcause\tvolume \\u00fc\\\\",
    "state\taffected-topics\t-1", "state\tfence-installed\ttrue", "state\tfence-closed\tfalse",
    "state\tclients\t3", "state\tclients-max\t100",
]  # fmt: skip


class Shim(FakeShim):
    def explain(self, client: Client) -> list[str]:
        return LINES


def broker() -> HostBroker:
    return HostBroker(Shim(client_uses=[use(client_id=str(number)) for number in range(3)]), Settings())


@pytest.mark.parametrize(("most", "rows", "left_out"), [(0, 0, False), (2, 2, True), (3, 3, False), (9, 3, False)])
def test_a_look_has_as_many_clients_as_are_wanted_and_tells_if_there_are_more(
    most: int, rows: int, left_out: bool
) -> None:
    look = broker().look(most)
    assert [each.client_id for each in look.uses] == ["0", "1", "2"][:rows]
    assert look.left_out == left_out


def test_a_look_tells_the_state() -> None:
    look = broker().look(0)
    assert (look.where, look.state, look.factor, look.limit_factor) == ("broker 1 (pid 42)", State.THROTTLE, 0.5, 0.7)
    assert (look.cause, look.fence, look.affected) == ("volume \u00fc\\", "open", -1)


def test_a_look_has_the_volumes_of_which_the_sizes_are_known() -> None:
    shim = Shim(numbers=[
        Gauge("Volume", "/dev/sdb", "Capacity", 1000.0), Gauge("Volume", "/dev/sdb", "Consumed", 600.0),
        Gauge("VolumeLimits", "/dev/sdb", "Hard", 900.0), Gauge("VolumeLimits", "/dev/sdb", "Soft", 500.0),
        Gauge("VolumeLimits", "/dev/sdb", "Factor", 0.5), Gauge("VolumeLimits", "/gone", "Factor", 0.5),
        Gauge("Volume", "/dev/sda", "Capacity", 10.0), Gauge("Volume", "/dev/sda", "Consumed", 1.0),
        Gauge("Factor", "", "Value", 0.5),
    ])  # fmt: skip
    volumes = HostBroker(shim, Settings()).look(0).volumes
    assert volumes == [VolumeUse("/dev/sda", 10, 1), VolumeUse("/dev/sdb", 1000, 600, 500, 900, 0.5)]


def test_lines_of_another_version_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="clients-max"):
        parse([line for line in LINES if "clients-max" not in line])
