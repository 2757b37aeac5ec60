"""One check for each role.

Every check builds the plugin as at a broker's start, calls it as the host would, changes the properties live, closes
the plugin, and looks for threads that it left behind. The answers of suppliers are in ``answers.py``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quotahost.api import DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier, Role
from quotahost.broker.discovery import PluginError
from quotahost.model import Client, Factor, Volume
from quotahost.model.volumes import as_answer
from quotahost.settings.declaration import SettingsError
from quotahost.testing.answers import Answers
from quotahost.testing.caller import ContractBroken
from quotahost.testing.host import Entry, FakeHost, PluginT, Properties
from quotahost.testing.limits import check_limits
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES


def check_supplier(
    entry: Entry[QuotaSupplier],
    properties: Properties | None = None,
    *,
    name: str | None = None,
    clients: Sequence[Client] = (),
    reconfigured: Properties | None = None,
) -> None:
    """Check a supplier: its answers for all kinds of clients, whether it announces what changes, and whether the
    client-ids that ``distinct_client_ids`` doesn't name really have equal quotas.

    Args:
        entry: the class or function, an ``EntryPoint``, or the name of an installed one.
        properties: the broker's, such as ``{"plugin.NAME.produce": "1M"}``.
        name: NAME; by default the entry point's, or the class' in kebab-case (OffPeak: off-peak).
        clients: to be asked for in addition to :data:`quotahost.testing.CLIENTS`.
        reconfigured: other properties, to change to, and back, while the plugin lives.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.SUPPLIER, entry, properties, name) as host:
        answers = Answers(host, [*CLIENTS, *clients])
        answers.expect_announced("nothing has happened")
        # Brokers come and go: a supplier may divide a quota by their number, and must announce what that changes.
        host.cluster(1, 2, 3)
        host.cluster(1)
        answers.expect_announced("cluster_changed()")
        for change in CLIENT_QUOTAS:
            host.client_quota(change)
        answers.expect_announced("client_quota_changed()")
        host.tick()
        answers.expect_announced("tick()")
        for _ in _changed(host, properties, reconfigured):
            answers.forget()


def check_factor_source(
    entry: Entry[QuotaFactorSource],
    properties: Properties | None = None,
    *,
    name: str | None = None,
    reconfigured: Properties | None = None,
) -> None:
    """Check a factor source: what it reads, again and again. Arguments as of :func:`check_supplier`.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.FACTOR_SOURCE, entry, properties, name) as host:
        for _ in range(3):
            _check_reading(host)
        for _ in _changed(host, properties, reconfigured):
            _check_reading(host)


def check_policy(
    entry: Entry[QuotaPolicy],
    properties: Properties | None = None,
    *,
    name: str | None = None,
    volumes: Sequence[Volume] = (),
    reconfigured: Properties | None = None,
) -> None:
    """Check a policy: a factor from 0 to 1 for every volume, no larger one for a fuller volume, and limits that fit it.

    ``volumes`` are judged in addition to :data:`quotahost.testing.VOLUMES`; other arguments as of
    :func:`check_supplier`.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.POLICY, entry, properties, name) as host:
        _check_factors(host, [*VOLUMES, *volumes])
        for _ in _changed(host, properties, reconfigured):
            _check_factors(host, [*VOLUMES, *volumes])


def check_task(
    entry: Entry[DataSourceTask],
    properties: Properties | None = None,
    *,
    name: str | None = None,
    reconfigured: Properties | None = None,
    within: float = 30.0,
) -> None:
    """Check a task: it runs, and runs again, each time ``within`` so many seconds.

    Other arguments as of :func:`check_supplier`.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.TASK, entry, properties, name) as host:
        host.run(within)
        host.run(within)
        for _ in _changed(host, properties, reconfigured):
            host.run(within)


@contextmanager
def _hosted(
    role: Role, entry: Entry[PluginT], properties: Properties | None, name: str | None
) -> Iterator[FakeHost[PluginT]]:
    # Taken before the plugin is built, since its constructor may start threads already.
    before = set(threading.enumerate())
    try:
        host = FakeHost(role, entry, properties, name=name)
    except (PluginError, SettingsError) as error:
        raise ContractBroken(1, f"with these properties a broker would not start: {error}") from error
    with host:
        yield host
    # Only after close(), and not after a failure: that one is what the author must see.
    _check_threads(before, host.patience)


def _changed(host: FakeHost[Any], properties: Properties | None, other: Properties | None) -> Iterator[None]:
    """Change settings live: the broker's to equal ones, then the plugin's own, and back."""
    # Another object, as after a change of other properties (contract 8).
    host.context.settings = host.context.settings.model_copy()
    yield
    change: Callable[[Any], None] | None = getattr(host.plugin, "reconfigure", None)
    if callable(change):
        host.call("reconfigure()", lambda: change(host.context.section))
        yield
    for given in (other, properties or {}) if other is not None else ():
        try:
            host.reconfigure(given)
        except (PluginError, SettingsError) as error:
            raise ContractBroken(8, f"a live change would be refused: {error}") from error
        yield


def _check_reading(host: FakeHost[QuotaFactorSource]) -> None:
    # `object`: the Protocol promises a type, but a plugin under test may answer anything.
    answer: object = host.call("read()", host.plugin.read)
    try:
        as_answer(answer, "")
    except TypeError as error:
        raise ContractBroken(6, f"read(): {error}") from None


def _check_factors(host: FakeHost[QuotaPolicy], volumes: Sequence[Volume]) -> None:
    last: dict[tuple[str, str, int], tuple[float, Volume]] = {}
    # The pipeline lists only the fullest of volumes of one kind, since every policy falls as a volume fills
    # (docs/adr/0009): by a policy that rises again the brokers would miss the smallest factor.
    host.factor_in_force(1.0)
    for volume in sorted(volumes, key=lambda v: v.consumed):
        factor = _factor(host, volume)
        lowest, emptier = last.get((volume.broker, volume.name, volume.capacity), (1.0, volume))
        if factor > lowest:
            larger = f"quota_factor() is {factor} for {volume}"
            raise ContractBroken(6, f"{larger}, but {lowest} for the emptier {emptier}")
        check_limits(host, volume, factor)
        last[volume.broker, volume.name, volume.capacity] = (factor, volume)


def _factor(host: FakeHost[QuotaPolicy], volume: Volume) -> float:
    answer = host.call(f"quota_factor() for {volume}", lambda: host.plugin.quota_factor(volume))
    try:
        return Factor(answer).value
    except ValueError as error:
        raise ContractBroken(6, f"quota_factor() for {volume} answered {answer!r}: {error}") from None


def _check_threads(before: set[threading.Thread], patience: float) -> None:
    end = time.monotonic() + patience
    # Not by join(), which raises for a thread that is listed, but just being started.
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.001)
    for thread in left:
        raise ContractBroken(7, f"after close() the thread {thread.name!r} still runs")
