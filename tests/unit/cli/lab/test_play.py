"""Tests that a replay with the original settings repeats the history, and with others errs little, on the right side.

A replay estimates how a volume would have filled and which clients would have been held back. The pages of replay and
report are one HTML file each, and no name in them becomes markup.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from harness.loop.cluster import EPOCH, BusyDisk, Cluster, ClusterScene
from quotahost.cli.lab import play as play_module
from quotahost.cli.lab.curves import Bucket, ClientUse, Curve, Name, Question, Report, Use
from quotahost.cli.lab.pages import replay_page, report_page
from quotahost.cli.lab.past import plan_of, report_table, tables_of
from quotahost.cli.lab.play import FactorPoint, Growth, Plan, Replay, play, replayed_client
from quotahost.cli.lab.traffic import ClientPlan, DiskPlan
from quotahost.model.volumes import byte_limits
from quotahost.records.snapshot import Snapshot
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.fakes.plugin_context import settings

MB = 10**6
EVERY = 250  # ms between two looks at the factor
NAME = Name("c", "1", "/data")

# ---- histories from numbers and from runs of the simulator, kept as the pipeline keeps them ----


def two_brokers(policy: str, soft: int, hard: int, /, **more: str) -> ClusterScene:
    """A scene in which the first broker's disk fills to its hard limit (MB), is freed, and fills again."""
    limits = {"static__storage__soft": f"{soft}M", "static__storage__hard": f"{hard}M"}
    own = settings(factor__source="snapshots", policy=policy, volumes__period="250ms", **limits, **more)
    clients = (
        ClientPlan("a", "eager", 2 * MB, 200_000, 50 * MB, replicas=(1,)),
        ClientPlan("b", "paced", 1 * MB, 100_000, 0.6 * MB),
    )
    others, cleanups = ((60_000, 80_000, 4.0 * MB),), ((120_000, 120 * MB),)
    first = BusyDisk(1000 * MB, 380 * MB, 1.0 * MB, 2000, others=others, cleanups=cleanups)
    second = DiskPlan(1000 * MB, 100 * MB, drain=0.5 * MB)
    return ClusterScene(7, 600_000, own, clients, (first, second), windows=2)


def recorded(scene: ClusterScene) -> tuple[Report, list[tuple[float, float]]]:
    """The history of the snapshots that the scene's brokers publish, and the second broker's factor every EVERY ms."""
    world = Cluster(scene)
    assert world.topic is not None
    readings: dict[Name, list[Bucket]] = defaultdict(list)
    factors: list[tuple[float, float]] = []
    publish = world.topic.publish

    def keep(snapshot: Snapshot) -> None:
        publish(snapshot)
        for volume in snapshot.volumes:
            levels = byte_limits(volume, volume.soft, volume.hard)
            assert levels is not None
            used, at = volume.consumed, snapshot.captured_at.timestamp()
            bucket = Bucket(at, used, used, used, volume.capacity, levels.soft, levels.hard)
            readings[Name("c", volume.broker, volume.name)].append(bucket)

    world.topic.publish = keep  # type: ignore[method-assign]

    def look() -> None:
        factors.append((EPOCH.timestamp() + world.events.now / 1000, world.brokers[1].factor))
        world.events.after(EVERY, look)

    world.events.at(EVERY, look)
    world.run()
    return report(readings), factors


def each_minute(
    used: Iterable[int], soft: int | None = None, hard: int | None = None, capacity: int = 1000
) -> list[Bucket]:
    """Readings, one for each minute from 1970 on."""
    return [Bucket(60.0 * i, bytes, bytes, bytes, capacity, soft, hard) for i, bytes in enumerate(used)]


def report(readings: dict[Name, list[Bucket]]) -> Report:
    """The report that the history would return."""
    times = [bucket.at for buckets in readings.values() for bucket in buckets]
    curves = tuple(Curve(name, tuple(readings[name]), None) for name in sorted(readings))
    return Report(Question(""), min(times), max(times), 0.0, len(curves), curves)


def plan(new: Settings, then: Settings | None = None, windows: int = 2) -> Plan:
    """A plan with the same settings then and now, unless ``then`` is given."""
    return Plan(new, then or new, (windows, 1000))


def value_at(points: Iterable[tuple[float, ...]], time: float, which: int) -> float:
    """The value in force at a time; the points are in order of time."""
    return [point for point in points if point[0] <= time][-1][which]


# ---- the history, and replays with other settings ----


def local(soft: int | None = None, hard: int | None = None, **more: str) -> Settings:
    """The settings of a broker that judges its own disks by these limits, in bytes."""
    limits = {"static__storage__soft": soft, "static__storage__hard": hard}
    given = {name: str(level) for name, level in limits.items() if level is not None}
    return settings(factor__source="local", **given, **more)


def test_limits_alone_make_brokers_judge_their_own_disks_then_as_with_these_settings(tmp_path: Path) -> None:
    lines = [f"{PREFIX}static.storage.soft=500", f"{PREFIX}static.storage.hard=900", "quota.window.size.seconds=120"]
    file = tmp_path / "server.properties"
    file.write_text("\n".join(lines))
    found = play(report({NAME: each_minute(range(0, 1000, 100), 500, 900)}), plan_of(file, None))
    assert found.factors[0].then == found.factors[0].new
    assert (found.factors[0].then.pauses, found.factors[0].then.lowest) == (1, 0.0)
    assert plan_of(file, None).windows == (11, 120_000)


def test_a_volume_has_the_limits_of_its_override() -> None:
    used = each_minute(range(0, 1000, 100), 850, 950)
    history = report({Name("c", "1", "/a"): used, Name("c", "1", "/b"): used})
    own = local(850, 950, static__storage__overrides="/b soft=300 hard=500")
    volumes = {volume.name.volume: volume for volume in play(history, plan(own)).volumes}
    assert (volumes["/a"].points[0].soft, volumes["/b"].points[0].soft) == (850, 300)
    assert volumes["/b"].new.throttle_s > 0
    assert volumes["/a"].then.lowest == volumes["/b"].then.lowest


def test_a_pause_lasts_until_so_much_is_free_as_pause_release_says() -> None:
    history = report({NAME: each_minute([*range(0, 1000, 100), 900, 850, 800, 750, 700, 650, 600], 500, 900)})
    played = [play(history, plan(local(500, 900, pause__resume__free_share=share))) for share in ("0", "0.5")]
    none, half = (found.factors[0].new.pause_s for found in played)
    assert half - none == pytest.approx(3 * 60, abs=2)  # until 850 or 700 bytes; 50 bytes go each minute
    assert [found.volumes[0].then.pause_s for found in played] == [none, half]


def test_brokers_that_judge_their_own_disks_are_looked_at_no_more_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the replay of a week of a thousand brokers would take a quarter of an hour."""
    monkeypatch.setattr(play_module, "_QUESTIONS", 6000)
    history = report({Name("c", broker, "/d"): each_minute([10] * 170) for broker in "1234"})
    steps = {play(history, plan(settings(factor__source=source))).step for source in ("local", "snapshots")}
    assert steps == {169 * 60 / 1500}


USED = st.lists(st.integers(0, 1000), min_size=2, max_size=40)
LEVELS = st.tuples(st.integers(1, 900), st.integers(0, 100)).map(lambda each: (each[0], each[0] + each[1]))


@options(max_examples=20)
@given(USED, LEVELS)
def test_the_limits_of_then_give_what_was_recorded_and_without_limits_no_volume_is_emptier(
    used: list[int], levels: tuple[int, int]
) -> None:
    history = report({NAME: each_minute(used, *levels)})
    found = play(history, plan(local(*levels)))
    assert found.factors[0].then == found.factors[0].new
    assert [point.new for point in found.volumes[0].points] == used
    found = play(history, plan(local()))
    assert {point.new for point in found.factors[0].points} == {1.0}
    assert all(point.new >= point.then for point in found.volumes[0].points)


@pytest.mark.parametrize(
    ("then", "new"),
    [
        (("limits", 400, 500), ("limits", 400, 500)),
        (("limits", 400, 500), ("limits", 420, 600)),
        (("limits", 400, 500), ("limits", 390, 450)),
        (("limits", 400, 500), ("setpoint", 400, 500)),
        (("limits", 600, 900), ("limits", 400, 500)),
    ],
)
def test_it_comes_near_to_what_the_simulator_does_and_in_shadow_or_for_who_reads_slows_no_producer(
    then: tuple[str, int, int], new: tuple[str, int, int]
) -> None:
    scenes = [two_brokers(*then), two_brokers(*new)]
    (before, _), (direct, factors) = map(recorded, scenes)
    found = play(before, plan(scenes[1].settings, scenes[0].settings))
    volume = next(volume for volume in found.volumes if volume.name.broker == "1")
    real = [(bucket.at, bucket.last) for bucket in direct.curves[0].buckets]
    away = [abs(p.new - value_at(real, p.at, 1)) for p in volume.points if p.at >= real[0][0]]
    assert fmean(away) <= 8 * MB
    points = found.factors[0].points
    errors = [abs(value_at(points, at, 2) - factor) for at, factor in factors if at >= points[0].at]
    assert fmean(errors) <= 0.06
    for own, told in (({"shadow": "factor"}, "in shadow"), ({"factor__quota__types": "FETCH"}, "no PRODUCE")):
        without = play(before, plan(two_brokers(*new, **own).settings))
        assert without.factors[0].new.lowest < 1
        assert all(point.new == point.then for volume in without.volumes for point in volume.points)
        assert any(told in note for note in without.notes)


# ---- estimates ----


@pytest.mark.parametrize(
    ("start", "readings", "used", "estimated"),
    [
        pytest.param(1000, [(1400, 10, 5)], 1200, False, id="half the share gives half the growth"),
        pytest.param(1000, [(1400, 10, 5), (1300, 10, 5)], 1100, False, id="deletions count in full"),
        pytest.param(0, [(1000, 10, 10), (1000, 0, 10)], 2000, True, id="a PAUSE held back the growth from before it"),
        pytest.param(0, [(500, 0, 0)], 500, False, id="growth during a PAUSE happens with any settings"),
    ],
)
def test_an_estimate_of_readings_ten_seconds_apart(
    start: int, readings: list[tuple[int, float, float]], used: int, estimated: bool
) -> None:
    growth = Growth(start)
    for recorded, then_s, new_s in readings:
        growth.add(recorded, 10, then_s, new_s)
    assert (growth.used, growth.estimated) == (used, estimated)


#: The factor with the new settings is 1, 0.5 and 0 for ten minutes each, and then 1; the original factor is always 1.
FACTORS = tuple(FactorPoint(600.0 * i, 1.0, new) for i, new in enumerate((1.0, 0.5, 0.0, 1.0)))


def client(demand: float | None, brokers: str = "0", until: int = 40) -> ClientUse:
    uses = [Use(60.0 * i, broker, 100.0, demand, 1000.0) for i in range(until) for broker in brokers]
    return ClientUse("c", "alice", "app", 60.0, tuple(uses))


@pytest.mark.parametrize(("demand", "slowed"), [(400.0, 0), (500.0, 0), (501.0, 600), (None, 600)])
def test_a_client_is_slowed_beyond_what_the_factor_leaves(demand: float | None, slowed: int) -> None:
    found = replayed_client(client(demand), FACTORS, 2400.0)
    assert found.new.held == (600, slowed)
    assert found.then.held == (0, 0)
    on_two = replayed_client(client(demand and demand / 2, "01"), FACTORS, 2400.0)
    assert (on_two.new, on_two.brokers, on_two.rate) == (found.new, ("0", "1"), 200.0), "the demands of brokers add up"


def test_one_that_wants_nothing_or_was_gone_is_not_held_back_but_one_that_was_paused_counts_on() -> None:
    for gone in (client(0.0), client(None, until=5)):
        found = replayed_client(gone, FACTORS, 2400.0)
        assert found.new.held == found.then.held == (0, 0)
    factors = tuple(point._replace(then=point.new) for point in FACTORS)
    assert replayed_client(client(None, until=20), factors, 2400.0).then.held == (600, 600)


def with_client(history: Report, brokers: str) -> Report:
    return replace(history, clients=(client(None, brokers),))


def test_of_brokers_with_factors_of_their_own_those_count_where_it_writes() -> None:
    full, empty = (each_minute([used] * 40, 900, 1000) for used in (700, 10))
    history = report({Name("c", "0", "/d"): full, Name("c", "7", "/d"): empty})
    (found,) = play(with_client(history, "0"), plan(local(300, 600))).clients
    assert found.new.pause_s > 2000
    assert play(with_client(history, "7"), plan(local(300, 600))).clients == ()
    notes = [play(given, plan(local(300, 600))).notes for given in (history, with_client(history, "7"))]
    assert [any("no usage" in note for note in each) for each in notes] == [True, False]


# ---- the pages of report and replay ----

HOSTILE = "</title><script>alert('\"&{{ 7 * 7 }}')</script>$x_{ \x1b[31m\u202e\r\n\x9b31m\ud800"


def page(replay: Replay, name: str = "server.properties") -> str:
    return replay_page(replay, name, tables_of(replay))


def report_of(curve: Curve) -> Report:
    since, until = curve.buckets[0].at, curve.latest.at + 3600
    return Report(Question("/history"), since, until, 3600.0, reported=1, curves=(curve,))


def curve(consumed: int, rate: float | None, soft: int | None = 800, hard: int | None = 900) -> Curve:
    (bucket,) = each_minute([consumed], soft, hard)
    return Curve(Name("c", "1", "/d"), (bucket._replace(at=1795296600.0),), rate)  # 2026-11-21 21:30


def test_the_figures_are_of_the_brokers_that_would_be_held_back_longest() -> None:
    used = dict.fromkeys(range(1, 30), 10) | {9: 990}
    readings = {Name("c", str(broker), "/d"): each_minute([of] * 3) for broker, of in used.items()}
    shown = re.findall(r"<h2>(.*?)</h2>", page(play(report(readings), plan(local(800, 900)))))
    assert shown[0] == "Factor of broker 9"
    assert sum(each.startswith("Factor of ") for each in shown) == 20


def test_hostile_names_command_nothing_and_are_never_markup() -> None:
    name, buckets = Name(HOSTILE, HOSTILE, HOSTILE), each_minute(range(3), 50, 90)
    drawn = report_of(Curve(name, tuple(buckets), 1 / 3600))
    replayed = play(report({name: buckets}), plan(settings(factor__source="local")))
    drawn_page = report_page(drawn, report_table(drawn))
    for text in (drawn_page, drawn.title(drawn.curves[0]), page(replayed, "<script>file</script>")):
        assert "alert(" in text
        assert "<script" not in text or text == drawn.title(drawn.curves[0])
        assert all(char.isprintable() or char == "\n" for char in text)


@pytest.mark.parametrize(
    ("each", "when"),
    [
        (curve(540, 0.1), "in 1 h (2026-11-21 22:30)"), (curve(800, -0.1), "not at this rate"),
        (curve(801, None), "not known"), (curve(900, None), "reached"), (curve(540, 0.1, hard=None), "no limit"),
    ],
)  # fmt: skip
def test_when_a_limit_is_reached_follows_from_the_fill_rate(each: Curve, when: str) -> None:
    assert each.show_when(each.latest.hard) == when


@pytest.mark.parametrize("consumed", [0, 1, 5000])
def test_a_single_reading_can_be_drawn(consumed: int) -> None:
    drawn = report_of(curve(consumed, None, None, None))
    assert report_page(drawn, report_table(drawn)).count("<svg role") == 1
    one = {Name("c", "1", "/d"): each_minute([consumed], capacity=0)}
    found = play(report(one), plan(settings(factor__source="snapshots")))
    assert page(found).count("<svg role") == 2
