"""What looks and answers in the background of the live table."""

from __future__ import annotations

import pytest

from harness.system.waiting import eventually
from quotahost.cli.top.live import Background
from quotahost.cli.top.live import Panel, Question, Screen
from quotahost.errors import QuotahostError
from quotahost.model import Look
from tests.unit.cli.top.uses import look, use


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

    def heard() -> None:
        background.hand_over(screen)

    with Background(broker, 0.01) as background:
        eventually(lambda: (heard(), screen.problem)[1] == told)
        screen.question = question
        background.ask(question)
        eventually(lambda: (heard(), screen.panel)[1])
        assert screen.panel is not None
        assert screen.panel.lines[0] == told
        broker.error = None
        eventually(lambda: (heard(), screen.look and not screen.problem)[1])
        screen.question = question
        background.ask(question)
        eventually(lambda: (heard(), screen.panel and screen.panel.lines == ["told"])[1])
