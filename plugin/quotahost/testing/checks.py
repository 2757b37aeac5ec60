"""One check for each role.

Every check builds the plugin as at a broker's start, calls it as the host would, changes the properties live, closes
the plugin, and looks for threads that it left behind. A supplier's answers are kept from event to event (``_Answers``):
each must be of the right type, come from memory, and stay the same until the supplier announces another. A policy that
knows its limits is asked for those of each volume, which must fit the factor that it gave the volume.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from quotahost.api import DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier, Role
from quotahost.broker.discovery import PluginError
from quotahost.model import QUOTA_TYPES, Client, Factor, Limit, Quota, QuotaType, Volume
from quotahost.model.volumes import as_answer, as_typed_answer, byte_limits, check_quota_types
from quotahost.settings.declaration import SettingsError
from quotahost.testing.host import ContractBroken, Entry, FakeHost, PluginT, Properties
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES

T = TypeVar("T")
_FROM_MEMORY: Final = 0.01  # seconds; 20,000 clients may be new at once, and are asked for one after the other
_NEVER_NAMED: Final = "a client-id that no property names"
_TRIES: Final = 5  # one slow answer may be the machine's fault; so many are the plugin's
_LIMITS: Final = ("soft_limit", "hard_limit")
_BREACHES: Final = ("breaches_soft_limit", "breaches_hard_limit")


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
        answers = _Answers(host, [*CLIENTS, *clients])
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
    answer: object = _from_memory(host, "read()", host.plugin.read)
    try:
        as_answer(answer, "")
    except TypeError as error:
        raise ContractBroken(6, f"read(): {error}") from None
    types: object = getattr(host.plugin, "quota_types", None)
    if types is None:
        return
    try:
        check_quota_types(types)
    except TypeError as error:
        raise ContractBroken(14, str(error)) from None
    try:
        as_typed_answer(answer, "")
    except TypeError as error:
        raise ContractBroken(14, f"read(): {error}") from None


def _check_factors(host: FakeHost[QuotaPolicy], volumes: Sequence[Volume]) -> None:
    last: dict[Volume, tuple[float, Volume]] = {}
    # The pipeline lists only the fullest of volumes of one kind, since every policy falls as a volume fills
    # (docs/adr/0009): by a policy that rises again the brokers would miss the smallest factor.
    host.factor_in_force(1.0)
    for volume in sorted(volumes, key=lambda v: v.consumed):
        factor = _factor(host, volume)
        # Volumes of one name that differ in capacity or limits of their own are different ones.
        same = replace(volume, consumed=0, topics=None)
        lowest, emptier = last.get(same, (1.0, volume))
        if factor > lowest:
            larger = f"quota_factor() is {factor} for {volume}"
            raise ContractBroken(6, f"{larger}, but {lowest} for the emptier {emptier}")
        _check_limits(host, volume, factor)
        last[same] = (factor, volume)


def _factor(host: FakeHost[QuotaPolicy], volume: Volume) -> float:
    answer = _from_memory(host, f"quota_factor() for {volume}", partial(host.plugin.quota_factor, volume))
    try:
        return Factor(answer).value
    except ValueError as error:
        raise ContractBroken(6, f"quota_factor() for {volume} answered {answer!r}: {error}") from None


def _from_memory(host: FakeHost[Any], what: str, question: Callable[[], T]) -> T:
    """The last answer to a question that is asked again only if it was slow. Raises ContractBroken if all were."""

    def quickest() -> tuple[T, float]:
        # It ends well before call() gives up, so that a slow plugin is reported as slow and not as one that hangs.
        best, end = float("inf"), time.monotonic() + host.patience / 2
        for _ in range(_TRIES):
            begin = time.perf_counter()
            answer = question()
            best = min(best, time.perf_counter() - begin)
            if best <= _FROM_MEMORY or time.monotonic() > end:
                break
        return answer, best

    answer, seconds = host.call(what, quickest)
    if seconds > _FROM_MEMORY:
        slow = f"{what} took {seconds * 1000:.0f} ms at best"
        raise ContractBroken(3, f"{slow}: it must answer from memory, and wait for nothing")
    return answer


def _check_threads(before: set[threading.Thread], patience: float) -> None:
    end = time.monotonic() + patience
    # Not by join(), which raises for a thread that is listed, but just being started.
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.001)
    for thread in left:
        raise ContractBroken(7, f"after close() the thread {thread.name!r} still runs")


# ---- a supplier's answers ----


class _Answers:
    """The supplier's last answer for each client and quota type."""

    def __init__(self, host: FakeHost[QuotaSupplier], clients: Sequence[Client]) -> None:
        self._host, self._clients = host, clients
        self.forget()

    def forget(self) -> None:
        """Ask for all again, as the host does when properties have changed."""
        self._announced_before = len(self._host.announced)
        self._known = self._ask()

    def expect_announced(self, after: str) -> None:
        """Ask for all again: the supplier must have announced every answer that differs."""
        answers = self._ask()
        announced = self._host.announced[self._announced_before :]
        # An announcement too many costs a question; one too few leaves a client with its old quota.
        for (client, quota_type), answer in answers.items():
            before = self._known[client, quota_type]
            if answer != before and not _covered(client, announced):
                raise ContractBroken(
                    10,
                    f"after {after} the {quota_type} quota of {_named(client)} is {answer}, not {before} any "
                    "more, without a call of answers_changed for it: the broker would keep the old one",
                )
        self._announced_before, self._known = len(self._host.announced), answers

    def _ask(self) -> dict[tuple[Client, QuotaType], Quota | None]:
        answers = {
            (client, quota_type): self._answer(client, quota_type)
            for client in self._clients
            for quota_type in QUOTA_TYPES
        }
        distinct = getattr(self._host.plugin, "distinct_client_ids", None)
        if callable(distinct):
            for principal in dict.fromkeys(client.principal for client in self._clients):
                self._check_alike(principal, distinct)
        return answers

    def _check_alike(self, principal: str, distinct: Callable[[str], object]) -> None:
        """The client-ids that the supplier doesn't name have the same quotas, those that nobody has seen, too."""
        what = f"distinct_client_ids({principal!r:.40})"
        named = _from_memory(self._host, what, partial(distinct, principal))
        if named is None:
            return
        if isinstance(named, str) or not isinstance(named, Collection) or not all(isinstance(n, str) for n in named):
            raise ContractBroken(6, f"{what} answered {named!r:.200}: it answers a collection of texts or None")
        ids = dict.fromkeys([_NEVER_NAMED, *(client.client_id for client in self._clients)])
        others = [Client(principal, name) for name in ids if name not in named]
        for quota_type in QUOTA_TYPES:
            quotas = self._host.call("quota()", partial(self._quotas, others, quota_type))
            for client, quota in zip(others, quotas, strict=True):
                if quota != quotas[0]:
                    raise ContractBroken(
                        11,
                        f"the {quota_type} quota of {_named(client)} is {quota}, that of {_named(others[0])} is "
                        f"{quotas[0]}, and {what} names neither: the broker would give both the same",
                    )

    def _quotas(self, clients: Sequence[Client], quota_type: QuotaType) -> list[Quota | None]:
        return [self._host.plugin.quota(client, quota_type) for client in clients]

    def _answer(self, client: Client, quota_type: QuotaType) -> Quota | None:
        what = f"quota() for {_named(client)}, {quota_type},"
        answer: object = _from_memory(self._host, what, partial(self._host.plugin.quota, client, quota_type))
        if answer is not None and not isinstance(answer, Quota):
            raise ContractBroken(6, f"{what} answered {answer!r}: a supplier answers a Quota or None")
        return answer


def _covered(client: Client, announced: Sequence[tuple[str | None, str | None]]) -> bool:
    return any(
        principal in (None, client.principal) and client_id in (None, client.client_id)
        for principal, client_id in announced
    )


def _named(client: Client) -> str:
    # Kafka lets a client-id have 32,767 bytes, and the samples have one of that length.
    principal, client_id = (repr(n if len(n) <= 40 else n[:40] + "…") for n in client)
    return f"principal {principal}, client-id {client_id}"


# ---- a policy's limits ----


def _check_limits(host: FakeHost[QuotaPolicy], volume: Volume, factor: float) -> None:
    """Ask a policy that knows its limits for those of one volume; ``factor`` is what it gave it."""
    lacking = [name for name in (*_LIMITS, *_BREACHES) if not callable(getattr(host.plugin, name, None))]
    if len(lacking) == 4:
        return
    if lacking:
        raise ContractBroken(12, f"a policy has all four methods of limits or none; this one lacks {lacking[0]}()")
    limits = [_ask(host, name, volume) for name in _LIMITS]
    _check_types(limits, (Limit, type(None)), "a Limit or None", volume)
    breaches = [_ask(host, name, volume) for name in _BREACHES]
    _check_types(breaches, (bool,), "True or False", volume)
    levels = byte_limits(volume, *limits)
    if all(limits) and levels and levels.contradict:
        raise ContractBroken(12, f"{volume} reaches its hard limit, {limits[1]}, before its soft one, {limits[0]}")
    _check_breaches(breaches[0], breaches[1], factor, volume)
    _check_hard(limits[1], factor, volume)


def _ask(host: FakeHost[QuotaPolicy], name: str, volume: Volume) -> Any:
    return host.call(f"{name}() for {volume}", lambda: getattr(host.plugin, name)(volume))


def _check_types(answers: list[Any], types: tuple[type, ...], words: str, volume: Volume) -> None:
    for answer in answers:
        if not isinstance(answer, types):
            raise ContractBroken(6, f"{answer!r} is no answer about the limits of {volume}: it must be {words}")


def _check_breaches(soft: bool, hard: bool, factor: float, volume: Volume) -> None:
    if hard and not soft:
        raise ContractBroken(12, f"{volume} breaches its hard limit, but not its soft one")
    if hard and factor != 0:
        raise ContractBroken(12, f"{volume} breaches its hard limit, but its factor is {factor} and not 0")
    if not soft and factor != 1:
        raise ContractBroken(12, f"{volume} doesn't breach its soft limit, but its factor is {factor} and not 1")


def _check_hard(hard: Limit | None, factor: float, volume: Volume) -> None:
    """From a hard limit on that the policy tells the factor is 0, and not before; near it a policy may round."""
    level = volume.capacity if hard is None else hard.consumed_at(volume.capacity)
    away = volume.consumed - level
    if level < volume.capacity and abs(away) > max(1, volume.capacity / 1000) and (factor == 0) != (away > 0):
        raise ContractBroken(12, f"the hard limit of {volume} is {hard}, but its factor is {factor}")
