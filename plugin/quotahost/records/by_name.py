"""Keeps the latest valid record of each name, for all readers of the cluster-wide quotas and the budgets.

A reader keeps no record before it has read the topic to its end. If a reader refuses a record, the earlier record of
the same name stays, even when the topic is read again from its beginning, until a tombstone removes it.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from quotahost.records.codec import Refused

_Name = TypeVar("_Name")
_T = TypeVar("_T")


class LatestByName(ABC, Generic[_Name, _T]):
    """The table ``by_name``; live records change it name by name, so other threads may look up names meanwhile."""

    most: int  # names in the table; both limits bound the memory that the table takes on a broker
    most_octets: int  # bytes of all their keys

    _reading: "LatestByName[_Name, _T]"  # the next table, while the topic is read from its beginning

    def __init__(self, before: dict[_Name, _T] | None = None) -> None:
        self.by_name: dict[_Name, _T] = {}
        # A copy, because a tombstone removes names from it that others look up in the present table.
        self._octets, self._before = 0, dict(before or {})

    @abstractmethod
    def name_of(self, key: bytes | None) -> _Name | None:
        """The name in a record's key; None for a record of another kind in the same topic. Raises Refused (key)."""

    @abstractmethod
    def decode(self, name: _Name, value: bytes) -> _T:
        """The contents of a record. Raises Refused if no reader takes the record."""

    def begins(self) -> None:
        """Start to read the topic from its beginning, and drop the records of a reading that didn't reach its end."""
        self._reading = type(self)(self.by_name)

    def record(self, key: bytes | None, value: bytes | None, live: bool) -> _Name | None:
        """Take a record from a follower; a record that is not ``live`` applies from :meth:`caught_up` on."""
        if live:
            return self.take(key, value)
        self._reading.take(key, value)
        return None

    def caught_up(self) -> dict[_Name, _T]:
        """Apply the records that were read from the topic's beginning, and return the table that applied before."""
        before, read = self.by_name, self._reading
        self.by_name, self._octets, read._before = read.by_name, read._octets, {}
        return before

    def take(self, key: bytes | None, value: bytes | None) -> _Name | None:
        """Take a record, and return its name if this changed the name's contents; the value None removes the name."""
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
                raise Refused("size", f"more than {self.most:,} names, or {self.most_octets:,} bytes of keys")
            self._octets += octets
        self.by_name[name] = said
