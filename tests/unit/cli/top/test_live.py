"""The live table of ``quotahost top``: what each key does, what is drawn, what looks and answers in the background."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from harness.system.waiting import eventually
from quotahost.cli.top.live import Background, Panel, Question, Screen, decode
from quotahost.cli.top.rows import Order
from quotahost.errors import QuotahostError
from quotahost.model import Look, QuotaType, State
from quotahost.model.use import LimitedBy
from tests.unit.cli.top.uses import look, use

MANY = [use("u", f"client-{number:05}", rate=1e6 - number) for number in range(1_000)]


def screen_of(*uses: object) -> Screen:
    screen = Screen()
    screen.show(look(uses or MANY))  # type: ignore[arg-type]
    return screen


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
    line = drawn(screen_of(held))[4]
    assert line.split()[-8:] == ["1.00", "MB/s", "50", "%", "1.3", "s", "topic", "quota"]
    assert "quota" not in drawn(screen_of(held))[3].replace("bound by", "")
    assert "2.00 MB/s" in drawn(screen_of(held), 120)[4]


def test_it_tells_the_state_its_cause_and_when_more_are_left_out() -> None:
    screen = screen_of()
    assert "left out" not in drawn(screen)[2]
    screen.show(look(MANY).first(999))
    assert drawn(screen)[2] == "999 rows by rate  more clients, less busy, are left out"
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
    assert not screen.done, "q was a part of the filter"
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


@settings(max_examples=25)
@given(st.lists(st.sampled_from(MOVES), max_size=10), st.integers(40, 200), st.integers(6, 60))
def test_it_fills_the_terminal_exactly_with_the_selected_row_in_sight(keys: list[str], width: int, height: int) -> None:
    screen = screen_of(*MANY[:100])
    for each in [*keys, ""]:
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
    assert sum(line.count("x") for line in drawn(screen)[3:10]) == 200, "nothing is cut"
    press(screen, "\x1b")
    assert "client-00000" in drawn(screen)[4]


def test_a_broker_that_no_longer_answers_is_told_beside_what_was_seen_last() -> None:
    screen = screen_of()
    screen.show(None, "the broker no longer answers")
    assert "the broker no longer answers" in drawn(screen)[2]
    assert "client-00000" in drawn(screen)[4]
    screen.show(look(MANY))
    assert "no longer" not in drawn(screen)[2]


@given(st.text())
def test_whatever_is_typed_is_no_error(text: str) -> None:
    screen = screen_of(use())
    press(screen, text)
    assert len(drawn(screen)) == 24


class Broker:
    """Fails until it is mended."""

    def __init__(self, error: Exception) -> None:
        self.error: Exception | None = error

    def look(self) -> Look:
        if self.error:
            raise self.error
        return look([use()])

    def answer(self, question: Question) -> Panel:
        if self.error:
            raise self.error
        return Panel(["told"])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (QuotahostError("no broker\n  -> start one"), "no broker"),
        (TypeError("a defect\nof two lines"), "TypeError: a defect"),
        (ValueError(), "ValueError: "),
    ],
)
def test_whatever_fails_is_told_and_the_next_look_is_shown(error: Exception, told: str) -> None:
    broker, screen, question = Broker(error), Screen(), Question()

    def shown() -> Screen:
        background.hand_over(screen)
        return screen

    def answered(words: str) -> bool:
        panel = shown().panel
        return panel is not None and panel.lines[0] == words

    with Background(broker, 0.01) as background:
        eventually(lambda: shown().problem == told)
        for words in (told, "told"):
            screen.question = question
            background.ask(question)
            eventually(lambda words=words: answered(words))
            broker.error = None
            eventually(lambda: shown().look and not screen.problem)
