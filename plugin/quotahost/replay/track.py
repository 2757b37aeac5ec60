"""One volume on its way through the history."""

from __future__ import annotations

from quotahost.model import Volume
from quotahost.replay.decider import Key
from quotahost.replay.growth import Growth
from quotahost.replay.limits import Limits, in_bytes, recorded
from quotahost.replay.tally import Tally
from quotahost.replay.values import Course, UsePoint
from quotahost.report.values import Bucket, Curve


class Track:
    """One volume on its way through the history."""

    def __init__(self, curve: Curve, limits: Limits) -> None:
        self.name, self._limits = curve.name, limits
        self.key: Key = curve.name.broker, curve.name.volume
        self._left, self._next = iter(curve.buckets), curve.buckets[0]
        self._done = False
        self._pull()
        self.bucket: Bucket | None = None
        self.growth = Growth(self._next.last)
        self.then, self.new = Tally(), Tally()
        self.then_s = self.new_s = self._since = 0.0
        self.points: list[UsePoint] = []
        self.full_at: float | None = None

    def _pull(self) -> None:
        following = next(self._left, None)
        self._done = following is None
        self._next = following or self._next

    def take(self, now: float) -> bool:
        """Take the newest reading up to now, if there is one that is new."""
        newest = None
        while not self._done and self._next.at <= now:
            newest = self._next
            self._pull()
        if newest is None:
            return False
        if self.bucket is not None:
            self.growth.add(newest.last, now - self._since, self.then_s, self.new_s)
        self.bucket, self._since, self.then_s, self.new_s = newest, now, 0.0, 0.0
        new = self.as_would_be()
        if self.full_at is None and newest.last < newest.capacity <= new.consumed:
            self.full_at = newest.at
        self.points.append(UsePoint(newest.at, newest.last, new.consumed, newest.capacity, *in_bytes(new)))
        return True

    def as_recorded(self) -> Volume:
        """With the limits of its newest reading."""
        assert self.bucket is not None
        return recorded(self.name, self.bucket)

    def as_would_be(self) -> Volume:
        """With the new limits."""
        assert self.bucket is not None
        return Volume(*self.key, self.bucket.capacity, int(self.growth.used), *self._limits)

    def known(self, now: float, silent: float) -> bool:
        """Whether its newest reading is not too old."""
        return self.bucket is not None and now - self.bucket.at <= silent

    def course(self) -> Course:
        """What became of it."""
        then, new = (max(each) for each in zip(*((point.then, point.new) for point in self.points), strict=True))
        return Course(
            self.name, self.then.held, self.new.held, then, new, self.full_at, self.growth.estimated,
            tuple(self.points),
        )  # fmt: skip
