"""Each role has one check, which a test calls with a plugin.

1. The check builds the plugin as at a broker's start, calls it like the host, changes the properties live, closes the
   plugin, and looks for threads that the plugin has not ended (``_check``).
2. The check of a supplier compares the answers before and after each event. Each answer must have the right type, come
   from memory, and stay equal until the supplier announces a change.
3. The check of a policy with limits asks for the limits of each volume; they must fit the policy's factor.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

from quotahost.api import DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier, Role
from quotahost.broker.discovery import PluginError
from quotahost.model import QUOTA_TYPES, Client, Factor, Limit, Quota, QuotaType, Scope, Volume
from quotahost.model.volumes import as_answer, as_quota_types, as_typed_answer, byte_limits
from quotahost.settings.declaration import SettingsError
from quotahost.testing.broker import FakeBroker
from quotahost.testing.host import ContractBroken, Entry, FakeHost, PluginT, Properties
from quotahost.testing.samples import CLIENT_QUOTAS, CLIENTS, VOLUMES

T = TypeVar("T")
Answers: TypeAlias = dict[tuple[Client, QuotaType], Quota | None]
_FROM_MEMORY: Final = 0.01  # seconds; the host may ask for 20,000 new clients, one after the other
_NEVER_NAMED: Final = "a client-id that no property names"
_TRIES: Final = 5  # a busy machine may slow one answer; if all answers are slow, the plugin is slow
_LIMITS: Final = ("soft_limit", "hard_limit")
_BREACHES: Final = ("breaches_soft_limit", "breaches_hard_limit")


def check_supplier(
    entry: Entry[QuotaSupplier], properties: Properties | None = None, *,
    name: str | None = None, clients: Sequence[Client] = (), reconfigured: Properties | None = None,
    broker: FakeBroker | None = None,
) -> None:  # fmt: skip
    """Check a supplier: its answers for all kinds of clients, whether it announces changed answers, and whether the
    client-ids that ``distinct_client_ids`` doesn't name really have equal quotas.

    Args:
        entry: the class or function, or the name of an installed plugin.
        properties: the broker's properties, such as ``{"plugin.NAME.produce": "1M"}``.
        name: NAME; by default the entry point's name, or the class name in kebab-case (OffPeak: off-peak).
        clients: more clients to ask for, beside :data:`quotahost.testing.CLIENTS`.
        reconfigured: other properties; the check changes to them, and back, while the plugin runs.
        broker: the broker that answers the plugin's questions; the default broker has no answers.

    Raises:
        AssertionError: the plugin breaks the contract; the message has the number of the sentence.
    """
    check = partial(_check_answers, clients=[*CLIENTS, *clients])
    _check(Role.SUPPLIER, entry, properties, name, reconfigured, broker, check)


def check_factor_source(
    entry: Entry[QuotaFactorSource], properties: Properties | None = None, *,
    name: str | None = None, reconfigured: Properties | None = None, broker: FakeBroker | None = None,
) -> None:  # fmt: skip
    """Check a factor source: several answers of ``read``. Arguments and errors are those of :func:`check_supplier`."""
    _check(Role.FACTOR_SOURCE, entry, properties, name, reconfigured, broker, _check_readings)


def check_policy(
    entry: Entry[QuotaPolicy], properties: Properties | None = None, *,
    name: str | None = None, volumes: Sequence[Volume] = (), reconfigured: Properties | None = None,
    broker: FakeBroker | None = None,
) -> None:  # fmt: skip
    """Check a policy: its factors are from 0 to 1, never rise with a fuller volume, and fit its limits.

    ``volumes`` are more volumes to ask for, beside :data:`quotahost.testing.VOLUMES`. The other arguments and the
    errors are those of :func:`check_supplier`.
    """
    check = partial(_check_factors, volumes=[*VOLUMES, *volumes])
    _check(Role.POLICY, entry, properties, name, reconfigured, broker, check)


def check_task(
    entry: Entry[DataSourceTask], properties: Properties | None = None, *,
    name: str | None = None, reconfigured: Properties | None = None, within: float = 30.0,
    broker: FakeBroker | None = None,
) -> None:  # fmt: skip
    """Check a task: it runs several times, and each run ends ``within`` this number of seconds.

    The other arguments and the errors are those of :func:`check_supplier`.
    """
    _check(Role.TASK, entry, properties, name, reconfigured, broker, lambda host: host.run(within))


def _check(
    role: Role, entry: Entry[PluginT], properties: Properties | None, name: str | None,
    reconfigured: Properties | None, broker: FakeBroker | None, check: Callable[[FakeHost[PluginT]], None],
) -> None:  # fmt: skip
    """Check a plugin after building it, and again after each live change: to equal settings, to others, and back."""
    # The constructor may start threads, so the list is taken before.
    before = set(threading.enumerate())
    with _breaking(1, "with these properties a broker would not start: ", PluginError, SettingsError):
        host = FakeHost(role, entry, properties, name=name, broker=broker)
    with host:
        check(host)
        # A new settings object, as after a change of other properties (contract 8).
        host.context.settings = host.context.settings.model_copy()
        check(host)
        reconfigure: Callable[[Any], None] | None = getattr(host.plugin, "reconfigure", None)
        if callable(reconfigure):
            host.call("reconfigure()", partial(reconfigure, host.context.section))
            check(host)
        for given in () if reconfigured is None else (reconfigured, properties or {}):
            with _breaking(8, "a live change would be refused: ", PluginError, SettingsError):
                host.reconfigure(given)
            check(host)
    # After a failure the threads are not checked, because the author must see the failure.
    _check_threads(before, host.patience)
    if host.broker.number("Plugin", "Errors", host.context.name):
        raise ContractBroken(5, "a thread of the plugin raised, and has ended for good; the log has the exception")


@contextmanager
def _breaking(number: int, what: str, *errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except errors as error:
        raise ContractBroken(number, f"{what}{error}") from error


def _check_threads(before: set[threading.Thread], patience: float) -> None:
    end = time.monotonic() + patience
    # join() would raise for a listed thread that is still starting.
    while (left := set(threading.enumerate()) - before) and time.monotonic() < end:
        time.sleep(0.001)
    for thread in left:
        raise ContractBroken(7, f"after close() the thread {thread.name!r} still runs")


def _from_memory(host: FakeHost[Any], what: str, question: Callable[[], T]) -> T:
    """Ask a question until an answer is quick, and return it. Raises ContractBroken if all _TRIES answers are slow."""
    best = float("inf")
    for _ in range(_TRIES):
        begin = time.perf_counter()
        answer = host.call(what, question)
        best = min(best, time.perf_counter() - begin)
        if best <= _FROM_MEMORY:
            return answer
    slow = f"{what} took {best * 1000:.0f} ms at best"
    raise ContractBroken(3, f"{slow}: it must answer from memory, and wait for nothing")


# ---- a supplier's answers ----


def _check_answers(host: FakeHost[QuotaSupplier], clients: Sequence[Client]) -> None:
    """Send the supplier every event, and ask for all quotas again: it must have announced each changed answer."""
    tick = getattr(host.plugin, "tick", None)
    events: dict[str, list[Callable[[], object]]] = {
        "nothing has happened": [],
        # A supplier may divide a quota by the number of brokers, and must then announce the changed quotas.
        "cluster_changed()": [partial(host.cluster, 1, 2, 3), partial(host.cluster, 1)],
        "client_quota_changed()": [partial(host.client_quota, change) for change in CLIENT_QUOTAS],
        "tick()": [partial(_from_memory, host, "tick()", tick)] if callable(tick) else [],
    }
    begin, earlier = _first_answers(host, clients)
    for after, calls in events.items():
        for call in calls:
            call()
        answers = _ask(host, clients)
        announced = host.announced[begin:]
        if not calls and len(announced) >= len(answers):
            raise ContractBroken(10, "quota() must not call answers_changed: the broker would ask again and again")
        # A needless announcement costs only a question; a missing announcement leaves a client with its old quota.
        for (client, quota_type), answer in answers.items():
            before = earlier[client, quota_type]
            heard = any(p in (None, client.principal) and c in (None, client.client_id) for p, c in announced)
            if answer != before and not heard:
                raise ContractBroken(
                    10,
                    f"after {after} the {quota_type} quota of {_named(client)} is {answer} and no longer "
                    f"{before}, without a call of answers_changed for it: the broker would keep the old quota",
                )
        begin, earlier = len(host.announced), answers


def _first_answers(host: FakeHost[QuotaSupplier], clients: Sequence[Client]) -> tuple[int, Answers]:
    """The number of announcements before, and the first answers. As on a broker, a supplier may raise at first."""
    end = time.monotonic() + host.patience
    while True:
        try:
            return len(host.announced), _ask(host, clients)
        except ContractBroken as broken:
            if broken.__cause__ is None or time.monotonic() > end:
                raise
        time.sleep(0.01)


def _ask(host: FakeHost[QuotaSupplier], clients: Sequence[Client]) -> Answers:
    answers = {(client, of): _answer(host, client, of) for client in clients for of in QUOTA_TYPES}
    _check_shared(answers)
    distinct = getattr(host.plugin, "distinct_client_ids", None)
    if callable(distinct):
        for principal in dict.fromkeys(client.principal for client in clients):
            _check_alike(host, principal, distinct, clients)
    return answers


def _answer(host: FakeHost[QuotaSupplier], client: Client, quota_type: QuotaType) -> Quota | None:
    what = f"quota() for {_named(client)}, {quota_type},"
    answer: object = _from_memory(host, what, partial(host.plugin.quota, client, quota_type))
    if answer is not None and not isinstance(answer, Quota):
        raise ContractBroken(6, f"{what} answered {answer!r}: a supplier answers a Quota or None")
    return answer


def _check_shared(answers: Answers) -> None:
    rates: dict[tuple[QuotaType, Scope, object], float] = {}
    for (client, quota_type), quota in answers.items():
        if quota and quota.rate is not None:
            own = {Scope.CLIENT: client, Scope.USER: client.principal, Scope.CLIENT_ID: client.client_id}
            rate = rates.setdefault((quota_type, quota.scope, own.get(quota.scope)), quota.rate)
            if rate != quota.rate:
                share = f"the {quota_type} quota of {_named(client)} is {quota}, and others who share it have {rate}"
                raise ContractBroken(6, f"{share}: the broker would give all of them the rate that it receives last")


def _check_alike(
    host: FakeHost[QuotaSupplier], principal: str, distinct: Callable[[str], object], clients: Sequence[Client]
) -> None:
    """Check that all client-ids that the supplier doesn't name have the same quotas, also an unknown client-id."""
    what = f"distinct_client_ids({principal!r:.40})"
    named = _from_memory(host, what, partial(distinct, principal))
    if named is None:
        return
    if isinstance(named, str) or not isinstance(named, Collection) or not all(isinstance(n, str) for n in named):
        raise ContractBroken(6, f"{what} answered {named!r:.200}: it answers a collection of texts or None")
    ids = dict.fromkeys([_NEVER_NAMED, *(client.client_id for client in clients)])
    first, *others = [Client(principal, name) for name in ids if name not in named]
    for quota_type in QUOTA_TYPES:
        quota = _answer(host, first, quota_type)
        for client in others:
            if (other := _answer(host, client, quota_type)) != quota:
                raise ContractBroken(
                    11,
                    f"the {quota_type} quota of {_named(client)} is {other}, that of {_named(first)} is {quota}, "
                    f"and {what} names neither: the broker would give both the same quota",
                )


def _named(client: Client) -> str:
    # Kafka accepts a client-id of 32,767 bytes, and a sample has such a client-id.
    principal, client_id = (repr(n if len(n) <= 40 else n[:40] + "…") for n in client)
    return f"principal {principal}, client-id {client_id}"


# ---- a factor source's answers ----


def _check_readings(host: FakeHost[QuotaFactorSource]) -> None:
    for _ in range(3):
        # `object`: the Protocol promises a type, but a plugin under test may return any type.
        answer: object = _from_memory(host, "read()", host.plugin.read)
        with _breaking(6, "read(): ", TypeError):
            as_answer(answer, "")
        if hasattr(host.plugin, "quota_types"):
            with _breaking(14, "", TypeError):
                as_quota_types(host.plugin.quota_types)
            with _breaking(14, "read(): ", TypeError):
                as_typed_answer(answer, "")


# ---- a policy's answers ----


def _check_factors(host: FakeHost[QuotaPolicy], volumes: Sequence[Volume]) -> None:
    last: dict[Volume, tuple[float, Volume]] = {}
    # The pipeline lists only the fullest volume of each kind (docs/adr/0009). If a factor could rise as a volume fills,
    # the brokers would miss the smallest factor.
    host.factor_in_force(1.0)
    for volume in sorted(volumes, key=lambda v: v.consumed):
        factor = _factor(host, volume)
        # Two volumes with one name but another capacity, or other limits, are different volumes.
        same = replace(volume, consumed=0, topics=None)
        lowest, emptier = last.get(same, (1.0, volume))
        if factor > lowest:
            larger = f"quota_factor() is {factor} for {volume}"
            raise ContractBroken(6, f"{larger}, but {lowest} for the emptier {emptier}")
        _check_limits(host, volume, factor)
        last[same] = (factor, volume)


def _factor(host: FakeHost[QuotaPolicy], volume: Volume) -> float:
    answer = _from_memory(host, f"quota_factor() for {volume}", partial(host.plugin.quota_factor, volume))
    with _breaking(6, f"quota_factor() for {volume} answered {answer!r}: ", ValueError):
        return Factor(answer).value


def _check_limits(host: FakeHost[QuotaPolicy], volume: Volume, factor: float) -> None:
    """Check a policy's limits for one volume, if it has limits; ``factor`` is the policy's factor for the volume."""
    lacking = [name for name in (*_LIMITS, *_BREACHES) if not callable(getattr(host.plugin, name, None))]
    if len(lacking) == 4:
        return
    if lacking:
        names = ", ".join(f"{name}()" for name in lacking)
        raise ContractBroken(12, f"a policy has all four methods of limits or none; this one lacks {names}")
    soft, hard = (_told(host, name, volume, Limit | None, "a Limit or None") for name in _LIMITS)
    breaches_soft, breaches_hard = (_told(host, name, volume, bool, "True or False") for name in _BREACHES)
    levels = byte_limits(volume, soft, hard)
    soft_level, level = (limit.consumed_at(volume.capacity) if limit else volume.capacity for limit in (soft, hard))
    above_soft, away = volume.consumed - soft_level, volume.consumed - level
    rounded = max(1, volume.capacity / 1000)  # bytes: a policy may round its limits by this much
    wrong = {
        f"{volume} reaches its hard limit, {hard}, before its soft one, {soft}": levels and levels.contradict,
        f"{volume} breaches its hard limit, but not its soft one": breaches_hard and not breaches_soft,
        f"{volume} breaches its hard limit, but its factor is {factor} and not 0": breaches_hard and factor != 0,
        f"{volume} doesn't breach its soft limit, but its factor is {factor} and not 1":
            not breaches_soft and factor != 1,
        f"the hard limit of {volume} is {hard}, but its factor is {factor}":
            level < volume.capacity and abs(away) > rounded and (factor == 0) != (away > 0),
        f"the soft limit of {volume} is {soft}, but breaches_soft_limit() is {breaches_soft}":
            soft is not None and abs(above_soft) > rounded and breaches_soft != (above_soft > 0 or breaches_hard),
    }  # fmt: skip
    for sentence, is_so in wrong.items():
        if is_so:
            raise ContractBroken(12, sentence)


def _told(host: FakeHost[QuotaPolicy], name: str, volume: Volume, types: Any, words: str) -> Any:
    answer = host.call(f"{name}() for {volume}", partial(getattr(host.plugin, name), volume))
    if not isinstance(answer, types):
        raise ContractBroken(6, f"{answer!r} is not an answer about the limits of {volume}: it must be {words}")
    return answer
