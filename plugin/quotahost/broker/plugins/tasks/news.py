"""Decides when this broker's record is written anew: at the start, after a period, and at once when it is news.

The tasks ``publish-volumes`` and ``publish-usage`` look at something several times a second and offer what they saw.
Most of it differs so little from the last record that nobody would act on it. What passes goes to the topic by
``quotahost.kafka.publisher``, one record at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from quotahost.api import Context
from quotahost.kafka.publisher import RETRY, Publisher

T = TypeVar("T")


class NewsPublisher(Generic[T]):
    """Keeps what was published last, and writes again when it has to; the record's key is this broker's id."""

    def __init__(
        self,
        context: Context,
        topic: str,
        what: str,
        is_news: Callable[[T, T], bool],
        clock: Callable[[], float],
        more: Sequence[str] = (),
    ) -> None:
        """Nothing is connected yet.

        Args:
            context: the task's.
            topic: its name; compacted, made if absent.
            what: is published, in words for the log.
            is_news: whether the second differs enough from the first, which was published, to be published at once.
            clock: in seconds, monotonic.
            more: other topics that are made with it.
        """
        self._publisher = Publisher(context, topic, what, self._lost, clock, more)
        self._key, self._is_news, self._clock = str(context.node_id).encode(), is_news, clock
        self._due = clock()
        self._published: T | None = None
        self._topics_gone = False

    def offer(self, seen: T | None, make: Callable[[T], bytes], period: float) -> None:
        """Publish what was seen if it is news or its time has come, unless a record is still on its way.

        Args:
            seen: what the task saw; None if there is nothing to publish, also not later.
            make: encodes it; called only if it is published.
            period: seconds until it is published again without being news.
        """
        # busy() comes first: it also reports a lost record, even where there is nothing to send now.
        if self._publisher.busy() or seen is None:
            return
        if self._topics_gone:  # only now: a record that was on its way would never be heard of again
            self._topics_gone = False
            self._publisher.make_topics()
        news = self._published is not None and self._is_news(self._published, seen)
        if news or self._clock() >= self._due:
            # Before it is sent: send() may call _lost at once, which must have the last word.
            self._published, self._due = seen, self._clock() + period
            self._publisher.send(self._key, lambda: make(seen))

    def make_topics(self) -> None:
        """Make the topics that are gone, with the next record."""
        self._topics_gone = True

    def close(self) -> None:
        """Wait a moment for the record that is on its way."""
        self._publisher.close()

    def _lost(self) -> None:
        """The last record was not delivered, so nobody knows what is news: publish again soon, whatever is seen."""
        self._published, self._due = None, self._clock() + RETRY
