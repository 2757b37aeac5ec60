"""A producer: when it sends the next batch, after Kafka has muted it or the fence has turned it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from quotahost.simulation.events import Events
from quotahost.simulation.scene import ClientPlan

if TYPE_CHECKING:
    from quotahost.simulation.broker import Broker

BACKOFF: Final = 100  # ms, retry.backoff.ms of both Kafka's and librdkafka's producers


class Client:
    """Sends one batch after the other; the broker says for how long it is muted.

    Attributes:
        plan: what it is.
        sent: bytes that were appended so far.
        turned_back_at: when the broker turned it back last, in ms.
        held_since: when it did so first since the last append; None if it hasn't.
    """

    def __init__(self, plan: ClientPlan, broker: Broker, events: Events, offset: int) -> None:
        """It begins ``offset`` ms after the start."""
        self.plan, self._broker, self._events = plan, broker, events
        self.sent = self.turned_back_at = 0
        self.held_since: int | None = None
        self._began = offset
        self._due = float(offset)  # when it has the next batch to send
        self._batches = 0
        # How many batches of a burst come at once, and after how many ms the next burst.
        self._burst = max(1, round(plan.demand * plan.every / 1000 / plan.batch)) if plan.kind == "bursty" else 1
        self._gap = plan.batch * self._burst / plan.demand * 1000
        events.at(offset, self.send)

    def send(self) -> None:
        """Send a batch now, or wait until the broker takes one."""
        if self._broker.turns_back(self):
            return
        plan, now = self.plan, self._events.now
        mute = self._broker.append(self)
        self.sent += plan.batch
        self.held_since = None
        if plan.kind == "reconnecting":
            mute = min(mute, plan.every)
        self._batches += 1
        if self._batches % self._burst == 0:
            # An eager client's line is never behind; what a paced one has to send piles up while it waits.
            self._due = (now if plan.kind in ("eager", "reconnecting") else self._due) + self._gap
        self._events.at(max(now + max(mute, 1), int(self._due)), self.send)

    def retry(self) -> None:
        """The fence is open again: it tries as its backoff has it, which began when it was turned back."""
        self._events.after(BACKOFF - (self._events.now - self.turned_back_at) % BACKOFF, self.send)
