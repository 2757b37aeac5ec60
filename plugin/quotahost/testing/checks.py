"""One check for each role; what breaks the contract of :mod:`quotahost.api` is an AssertionError."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from quotahost.api import Role
from quotahost.discovery.entry_points import PluginError
from quotahost.model import Client, ClusterVolumes, Factor, Volume
from quotahost.settings.declaration import SettingsError
from quotahost.testing.answers import Answers
from quotahost.testing.caller import broken
from quotahost.testing.host import HANGS, FakeHost, Properties
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES


def check_supplier(
    entry: Any,
    properties: Properties | None = None,
    *,
    name: str | None = None,
    clients: Sequence[Client] = (),
    reconfigured: Properties | None = None,
) -> None:
    """Check a supplier: its answers for all kinds of clients, and whether it announces what changes.

    Args:
        entry: the class or function, an ``EntryPoint``, or the name of an installed one.
        properties: the broker's, such as ``{"plugin.NAME.produce": "1M"}``.
        name: NAME; by default the entry point's, or the class' in kebab-case.
        clients: more than the odd ones that are always asked for (``quotahost.testing.samples.CLIENTS``).
        reconfigured: other properties, to change to while it lives.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.SUPPLIER, entry, properties, name) as host:
        answers = Answers(host, [*CLIENTS, *clients])
        answers.expect_announced("nothing has happened")
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
    entry: Any,
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
            _read(host)
        for _ in _changed(host, properties, reconfigured):
            _read(host)


def check_policy(
    entry: Any,
    properties: Properties | None = None,
    *,
    name: str | None = None,
    volumes: Sequence[Volume] = (),
    reconfigured: Properties | None = None,
) -> None:
    """Check a policy: a factor from 0 to 1 for every volume, and no larger one for a fuller volume.

    Args:
        entry: see :func:`check_supplier`, as ``properties``, ``name`` and ``reconfigured``.
        properties: the broker's.
        name: of the entry point.
        volumes: more than those that are always asked for (``quotahost.testing.samples.VOLUMES``).
        reconfigured: other properties, to change to while it lives.

    Raises:
        AssertionError: what is wrong, and which number of the contract it breaks.
    """
    with _hosted(Role.POLICY, entry, properties, name) as host:
        _judge(host, [*VOLUMES, *volumes])
        for _ in _changed(host, properties, reconfigured):
            _judge(host, [*VOLUMES, *volumes])


def check_task(
    entry: Any,
    properties: Properties | None = None,
    *,
    name: str | None = None,
    reconfigured: Properties | None = None,
    within: float = 30.0,
) -> None:
    """Check a task: it runs, and runs again, each time within so many seconds.

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
def _hosted(role: Role, entry: Any, properties: Properties | None, name: str | None) -> Iterator[FakeHost]:
    before = set(threading.enumerate())
    try:
        host = FakeHost(role, entry, properties, name=name)
    except (PluginError, SettingsError) as error:
        raise broken(1, f"with these properties a broker would not start: {error}") from error
    with host:
        yield host
    _no_thread_left(before)


def _changed(host: FakeHost, properties: Properties | None, other: Properties | None) -> Iterator[None]:
    """Change settings live: the broker's to equal ones, then the plugin's own, and back."""
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
            raise broken(8, f"a live change would be refused: {error}") from error
        yield


def _read(host: FakeHost) -> None:
    told = host.call("read()", host.plugin.read)
    if told is None or isinstance(told, Factor):
        return
    if not isinstance(told, ClusterVolumes):
        raise broken(6, f"read() answered {told!r}: a factor source answers ClusterVolumes, a Factor or None")
    wrong: list[object] = [v for v in told.volumes if not isinstance(v, Volume)]
    wrong += [text for text in told.unknown if not isinstance(text, str)]
    if wrong:
        raise broken(6, f"read() answered volumes or reasons that are none: {wrong[0]!r}")


def _judge(host: FakeHost, volumes: Sequence[Volume]) -> None:
    last: dict[tuple[str, str, int], tuple[float, Volume]] = {}
    for volume in sorted(volumes, key=lambda v: v.consumed):
        factor = _factor(host, volume)
        lowest, emptier = last.get((volume.broker, volume.name, volume.capacity), (1.0, volume))
        if factor > lowest:
            raise broken(
                6, f"quota_factor() is {factor} for {volume}, but {lowest} for the emptier {emptier}"
            )
        last[volume.broker, volume.name, volume.capacity] = (factor, volume)


def _factor(host: FakeHost, volume: Volume) -> float:
    answer = host.call(f"quota_factor() for {volume}", lambda: host.plugin.quota_factor(volume))
    try:
        return Factor(answer).value
    except ValueError as error:
        raise broken(6, f"quota_factor() for {volume} answered {answer!r}: {error}") from None


def _no_thread_left(before: set[threading.Thread]) -> None:
    end = time.monotonic() + HANGS
    # Not by join(), which raises for a thread that is listed, but just being started.
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.001)
    for thread in left:
        raise broken(7, f"after close() the thread {thread.name!r} still runs")
