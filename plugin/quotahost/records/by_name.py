"""How every reader of the cluster-wide quotas and budgets keeps them: by name, the latest record that is
good, and none before the topic was read to its end.

Where a record is refused, what was there of its name stays, also when the topic is read again from its beginning; but
for what a tombstone has removed meanwhile.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from quotahost.records.codec import Refused

_Name = TypeVar("_Name")
_T = TypeVar("_T")


class LatestByName(ABC, Generic[_Name, _T]):
    """``by_name`` is changed name by name, so other threads may look one up meanwhile."""

    most: int  # names that are kept, and bytes of all their keys: what they take of a broker's memory is bounded
    most_octets: int

    _reading: "LatestByName[_Name, _T]"  # what the topic has, while it is read from its beginning

    def __init__(self, before: dict[_Name, _T] | None = None) -> None:
        self.by_name: dict[_Name, _T] = {}
        # A copy: a tombstone takes out of it what others still look up until all is read.
        self._octets, self._before = 0, dict(before or {})

    @abstractmethod
    def name_of(self, key: bytes | None) -> _Name | None:
        """Whom a record is about; None if it is of another kind, which shares the topic. Raises Refused (key)."""

    @abstractmethod
    def decode(self, name: _Name, value: bytes) -> _T:
        """What a record says. Raises Refused if no reader takes it."""

    def begins(self) -> None:
        """The topic is read from its beginning from now on; what was read of it before its end was reached is gone."""
        self._reading = type(self)(self.by_name)

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> _Name | None:
        """Take a record as a follower reads it; one that is not ``live`` holds from :meth:`caught_up` on."""
        if live:
            return self.take(key, value)
        self._reading.take(key, value)
        return None

    def caught_up(self) -> dict[_Name, _T]:
        """What was read from the topic's beginning holds from now on; what held before."""
        before, read = self.by_name, self._reading
        self.by_name, self._octets, read._before = read.by_name, read._octets, {}
        return before

    def take(self, key: bytes | None, value: bytes | None) -> _Name | None:
        """Take a record, and return its name if that has something else now; None for the value removes it."""
        name = self.name_of(key)
        if name is None:
            return None
        octets, latest = len(key or b""), self.by_name.get(name)
        if value is None:
            self._before.pop(name, None)
            if self.by_name.pop(name, None) is None:
                return None
            self._octets -= octets
            return name
        try:
            said = self.decode(name, value)
        except Refused:
            if latest is None and name in self._before:
                self._keep(name, self._before[name], octets)
            raise
        if said == latest:
            return None
        self._keep(name, said, octets)
        return name

    def _keep(self, name: _Name, said: _T, octets: int) -> None:
        if name not in self.by_name:
            if len(self.by_name) >= self.most or self._octets + octets > self.most_octets:
                raise Refused("size", f"more than {self.most:,} of them, or {self.most_octets:,} bytes of keys")
            self._octets += octets
        self.by_name[name] = said
