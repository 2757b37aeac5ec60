"""Tests ``quotahost top``: one look made of all brokers' looks, its rows, and the live table that shows the rows."""

import json
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from rich.console import Console

from harness.system.waiting import eventually
from quotahost.base.errors import QuotahostError, Unusable
from quotahost.cli.console import json_text, lines_of
from quotahost.cli.top import cluster as module
from quotahost.cli.top.cluster import Cluster, listed
from quotahost.cli.top.live import Background, Panel, Question, Screen, decode
from quotahost.cli.top.rows import Choice, ClusterUse, Order, head, merged, values, whole
from quotahost.model import LimitedBy, QuotaType, State, VolumeUse
from quotahost.records import look as look_record
from quotahost.records.look import Answered
from quotahost.records.watch import Watch
from tests.unit.cli.top.uses import look, use


class Brokers:
    """Replaces ``Watching``: brokers 1 and 2 are alive, and other brokers may have written looks, too."""

    def __init__(self) -> None:
        self.alive = frozenset({"1", "2"})
        self.asked: list[Watch] = []
        self.written: list[tuple[bytes, bytes]] = []

    def brokers(self) -> tuple[frozenset[str], str]:
        return self.alive, "this"

    def ask(self, watch: Watch, wait: float = 20.0) -> None:
        self.asked.append(watch)

    def read(self, seconds: float) -> Iterator[tuple[bytes, bytes]]:
        while self.written:
            yield self.written.pop(0)

    def write(self, broker: str, *answers: Answered, watched: bool = True, cluster: str = "this") -> None:
        uses = [use(f"user-{broker}")] if watched else []
        record = look_record.of(broker, cluster, look(uses), answers, watched=watched)
        self.written.append((broker.encode(), look_record.encode(record)))


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    monkeypatch.setattr(module, "Watching", lambda *_: made)
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(module, "_LONGEST", 0.05)
    return made


def test_looks_of_other_clusters_and_of_brokers_that_the_cluster_does_not_list_are_not_kept(brokers: Brokers) -> None:
    with Cluster({}, "", "") as cluster:
        brokers.write("forged")
        with pytest.raises(Unusable, match="no broker answers"):
            cluster.look()
        brokers.write("1", cluster="")  # the broker doesn't know the cluster's id yet
        for broker in ("1", "2"):
            brokers.write(broker, cluster="mirrored")
        for number in range(1_000):
            brokers.write(f"forged-{number}")
        seen = cluster.look()
        assert list(seen.looks) == ["1"]
        assert seen.silent == ["2"]
        assert list(cluster._kept) == ["1"]
        brokers.alive = frozenset({"2"})
        brokers.write("2")
        cluster.look()
        cluster.look()
        assert list(cluster._kept) == ["2"], "a broker that left the cluster is forgotten"


def test_a_brokers_last_look_for_a_watcher_who_has_left_is_no_look_at_its_clients(brokers: Brokers) -> None:
    with Cluster({}, "", "") as cluster:
        brokers.write("1")
        brokers.write("2", watched=False)
        seen = cluster.look()
        assert (list(seen.looks), seen.silent) == (["1"], ["2"])
        brokers.write("2")
        assert [use.user for use in cluster.look().uses] == ["user-1", "user-2"]
        brokers.write("2", watched=False)
        assert [use.user for use in cluster.look().uses] == ["user-1", "user-2"]


def test_what_others_are_answered_is_no_answer(brokers: Brokers) -> None:
    with Cluster({}, "", "") as cluster:
        brokers.write("1")
        (row,) = cluster.look().uses
        brokers.write("1", Answered("invented", ("{}",)))
        assert cluster.answer(Question(row)).lines[-1].startswith("no answer")
        with pytest.raises(Unusable, match="doesn't tell what fills /dev/sdb"):
            cluster.answer(Question(volume="/dev/sdb", broker="1"))
        assert brokers.asked[-1].volume is not None
    assert brokers.asked[-1].seconds == 0, "the watcher tells brokers that it has left"


GB = 10**9


def test_the_volume_with_the_least_left_comes_first_and_nine_can_be_opened() -> None:
    half = [VolumeUse(f"/dev/sd{letter}", 100 * GB, 50 * GB) for letter in "abcdefghi"]
    slowed = VolumeUse("/dev/sdb", 100 * GB, 45 * GB, 40 * GB, 60 * GB, 0.25)
    fuller = VolumeUse("/dev/sdc", 100 * GB, 80 * GB, 90 * GB, 95 * GB, 1.0)
    found = listed({"10": look(volumes=half), "2": look(volumes=[slowed, fuller]), "3": look()})
    first = [(question.volume, question.broker) for question in found.volumes]
    assert (first[:3], len(first)) == ([("/dev/sdb", "2"), ("/dev/sdc", "2"), ("/dev/sda", "10")], 9)
    assert " ".join(found.lines[1].split()) == "1 2 /dev/sdb 100 GB 45.0 GB 40.0 GB 60.0 GB 0.25"
    assert found.lines[10].split()[:3] == ["10", "/dev/sdh", "100"], "the tenth volume has no key"
    assert found.lines[-1].startswith("unknown of broker 3:")
    assert listed({"1": look(), "2": look()}).lines[-1].startswith("unknown of brokers 1, 2: no plugin watches volumes")


def test_budgets_are_listed_once_those_that_hold_their_writers_first() -> None:
    volume = VolumeUse("/dev/sda", 100 * GB, 50 * GB)
    logs = VolumeUse("budget logs", 10 * GB, 9.5 * GB, None, 10 * GB, 0.5)
    orders = VolumeUse("budget orders.*", 500 * GB, 500 * GB, None, 500 * GB, 0.0)
    idle = VolumeUse("budget idle", 10 * GB, 0, None, 10 * GB, 1.0)
    found = listed({"1": look(volumes=[volume, idle, logs, orders], fence="closed"), "2": look(volumes=[orders, logs])})
    budgets = [line.split() for line in found.lines[found.lines.index("Budgets of storage") + 2 :]]
    assert budgets == [
        ["orders.*", "500", "GB", "500", "GB", "100.0", "%", "0"],
        ["logs", "9.50", "GB", "10.0", "GB", "95.0", "%", "0.5"],
        ["idle", "0", "B", "10.0", "GB", "0.0", "%", "1"],
    ]
    assert found.volumes == [Question(volume="/dev/sda", broker="1")], "a budget can't be opened"
    assert any(line.startswith("unknown of broker 2:") for line in found.lines)


# ---- rows ----


def test_a_client_of_several_brokers_is_one_row() -> None:
    slow = use(rate=1e6, quota=1e6, delay_ms=300.0, bound=LimitedBy.QUOTA, idle=0.0)
    idle = use(rate=1e5, quota=1e6, delay_ms=0.0, idle=3.0, shadow="static")
    reads = use(quota_type=QuotaType.FETCH, quota=None, limit=None)
    # A broker that asks for the creation of a topic has a bucket, too; the active controller's alone is charged.
    creates, asks = (use(quota_type=QuotaType.CONTROLLER_MUTATION, rate=rate, quota=10, limit=5) for rate in (4, 0))
    found = merged({"10": look([slow, creates]), "9": look([idle, reads, asks]), "2": look()}, {"2", "9", "10"})
    one, read, created = Choice().rows(found.uses)
    assert isinstance(one, ClusterUse)
    assert (one.rate, one.quota, one.delay_ms, one.idle, one.shadow) == (1.1e6, 2e6, 300.0, 0.0, "static")
    assert one.brokers == ("9", "10")
    # The broker on which the client has used up its quota decides.
    assert (one.bound, one.share) == (LimitedBy.QUOTA, 1.0)
    assert (read.quota, read.limit, read.share) == (None, None, None)
    assert (created.rate, created.quota, created.limit) == (4, 10, 5)
    first, _, columns, row, *_ = lines_of(lambda screen: screen.print(whole(found, Choice(), screen)))
    assert (first.startswith("3 of 3 brokers  OPEN"), "brokers" in columns) == (True, True)
    # Through a pipe, too, a line is only as long as its cells, because ssh without a terminal would fold the blanks.
    assert row == "alice     app        PRODUCE   1.10 MB/s  2.00 MB/s  100.0 %  300 ms        2  quota"


def test_the_worst_state_is_told_who_is_silent_and_which_broker_slows_single_types_by_its_load() -> None:
    slow = look(state=State.THROTTLE, factor=0.5, limit_factor=0.6, cause="broker 3", fence="open", affected=3)
    shut = look(state=State.PAUSE, factor=0.0, limit_factor=0.0, cause="broker 1", fence="closed")
    found = merged({"1": look(), "2": slow, "3": shut}, {"1", "2", "3", "4", "5"})
    assert (found.state, found.factor, found.cause, found.fence) == (State.PAUSE, 0.0, "broker 1", "closed")
    assert found.where == "3 of 5 brokers (silent: 4, 5)"
    found = merged({"1": look(), "2": slow}, {"1"})
    assert (found.factor, found.affected) == (0.5, 3)
    more = look([use()], left_out=True)
    assert [merged(looks, looks).left_out for looks in ({"1": look()}, {"1": look(), "2": more})] == [False, True]
    cause = "FETCH, PRODUCE x0.42: this broker's request handlers are 4 % idle (target 30 %)"
    found = merged({"1": look(), "2": look(where="broker 2", cause=cause)}, {"1", "2"})
    assert head(found)[1].plain == f"cause: broker 2: {cause}"
    assert head(look())[1].plain == ""


SLOW = use("bob", "slow", rate=5e5, quota=1e6, delay_ms=300.0, bound=LimitedBy.FACTOR)
FAST = use("carol", "fast", rate=9e6, quota=1e8)
FETCH = use("alice", "reads", quota_type=QuotaType.FETCH, rate=2e7, quota=None, limit=None)
NOTHING = use("dave", "none", rate=3.0, quota=0.0, bound=LimitedBy.QUOTA)
IDLE = use("erin", "idle", rate=0.0)
ALL = [SLOW, FETCH, IDLE, NOTHING, FAST]


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (Choice(Order.RATE), [FAST, SLOW, NOTHING, FETCH]),  # rates of reads aren't compared with rates of writes
        (Choice(Order.SHARE), [SLOW, FAST, NOTHING, FETCH]),
        (Choice(Order.DELAY), [SLOW, FAST, NOTHING, FETCH]),
        (Choice(Order.NAME), [FETCH, SLOW, FAST, NOTHING]),
        (Choice(type=QuotaType.FETCH), [FETCH]),
        (Choice(held=True), [SLOW, NOTHING]),
        (Choice(text="CAR"), [FAST]),
        (Choice(text="reads"), [FETCH]),
        (Choice(text="factor"), [SLOW]),
        (Choice(text="nothing"), []),
        (Choice(text="client"), []),  # no row shows this word: the scope is one client
    ],
)
def test_the_largest_come_first_without_the_idle_and_a_filter_keeps_what_it_names(
    choice: Choice, wanted: list[object]
) -> None:
    assert choice.rows(ALL) == wanted


# ---- the live table: its keys, its screen, and looks and answers in the background ----

MANY = [use("u", f"client-{number:05}", rate=1e6 - number) for number in range(1_000)]


def screen_of(*uses: object) -> Screen:
    return Screen(look(uses or MANY))  # type: ignore[arg-type]


def drawn(screen: Screen, width: int = 80, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, force_terminal=False, highlight=False)
    with console.capture() as text:
        console.print(screen.drawn(width, height))
    return [line.rstrip() for line in text.get().splitlines()]


def press(screen: Screen, keys: str) -> None:
    for key in decode(keys):
        screen.press(key)


def test_at_80_columns_all_numbers_and_what_binds_are_there() -> None:
    held = use("CN=a-very-long-name,O=of-a-company", "x" * 300, bound=LimitedBy.TOPIC_QUOTA, delay_ms=1300.0)
    assert drawn(screen_of(held))[4].split()[-8:] == ["1.00", "MB/s", "50.0", "%", "1.3", "s", "topic", "quota"]
    assert "quota" not in drawn(screen_of(held))[3].replace("bound by", "")
    assert "  1.00 MB/s  2.00 MB/s  50.0 %" in lines_of(lambda to: to.print(whole(look([held]), Choice(), to)))[3]


def test_it_tells_the_state_its_cause_and_when_more_are_left_out() -> None:
    screen = screen_of()
    assert "left out" not in drawn(screen)[2]
    screen.show(look(MANY).first(999))
    assert drawn(screen)[2] == "999 rows by rate  less busy clients are left out"
    screen.show(look(state=State.THROTTLE, factor=0.42, limit_factor=0.6, cause="broker 3, volume /dev/sdb"))
    assert "THROTTLE  factor 0.42 (PRODUCE x0.6 now)  fence open" in drawn(screen)[0]
    assert drawn(screen)[1] == "cause: broker 3, volume /dev/sdb"


def test_keys_sort_filter_and_clear() -> None:
    screen = screen_of()
    press(screen, "sht")
    assert (screen.choice.order, screen.choice.held, screen.choice.type) == (Order.SHARE, True, QuotaType.PRODUCE)
    press(screen, "\x1b")
    press(screen, "/t-0099q\x7f\r")
    assert [each.client_id for each in screen.rows()] == [f"client-0099{n}" for n in range(10)]
    assert not screen.done, "q is a letter of the filter"
    press(screen, "/\x1b")
    assert len(screen.rows()) == 1_000
    press(screen, "q")
    assert screen.done


def test_a_frozen_screen_keeps_what_it_shows() -> None:
    screen = screen_of()
    press(screen, "f")
    screen.show(look([use("new")]))
    assert len(screen.rows()) == 1_000
    assert "FROZEN" in drawn(screen)[2]
    press(screen, "f")
    screen.show(look([use("new")]))
    assert len(screen.rows()) == 1


MOVES = ["\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F", "r", "s", "d", "n"]


@pytest.mark.parametrize(("width", "height"), [(40, 6), (80, 24), (200, 60)])
def test_it_fills_the_terminal_exactly_with_the_selected_row_in_sight(width: int, height: int) -> None:
    screen = screen_of(*MANY[:100])
    for each in ["", *MOVES, *reversed(MOVES), *sorted(MOVES)]:
        press(screen, each)
        lines = drawn(screen, width, height)
        assert len(lines) == height
        assert max(map(len, lines)) <= width
        assert width < 80 or any(screen.rows()[screen.selected].client_id in line for line in lines)


def test_a_client_is_opened_and_left() -> None:
    screen = screen_of()
    press(screen, "\x1b[B")
    question = screen.press("enter")
    assert question == Question(client=MANY[1])
    screen.tell(Question(), Panel(["of an older question"]))
    assert "asking" in drawn(screen)[3]
    screen.tell(question, Panel(["PRODUCE is limited by " + "x" * 200]))
    assert drawn(screen)[3].startswith("PRODUCE is limited by")
    assert sum(line.count("x") for line in drawn(screen)[3:10]) == 200, "the long line isn't cut"
    press(screen, "\x1b")
    assert "client-00000" in drawn(screen)[4]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (QuotahostError("no broker\n  -> start one"), "no broker"),
        (TypeError("a defect\nof two lines"), "TypeError: a defect"),
    ],
)
def test_whatever_fails_is_told_and_the_next_look_is_shown(error: Exception, told: str) -> None:
    broker, question = Mock(), Question()
    screen = Screen(look(), question=question)
    broker.look.side_effect = broker.answer.side_effect = error

    def shown() -> Screen:
        background.hand_over(screen)
        return screen

    with Background(broker, 0.01) as background:
        eventually(lambda: shown().problem == told)
        background.ask(question)
        eventually(lambda: (panel := shown().panel) and panel.lines[0] == told)
        broker.look.side_effect, broker.look.return_value = None, look([use()])
        eventually(lambda: shown().look.uses and not screen.problem)


def test_for_programs_a_number_that_json_lacks_is_null() -> None:
    told = json.loads(json_text(values(look([use(quota=1e-320)]), Choice())))
    assert told["rows"][0]["share"] is None, "Kafka accepts so small a quota, and the share overflows"
