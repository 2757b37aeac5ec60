"""``top --bootstrap`` tells a cluster's brokers that a user watches, and shows the latest look of each broker.

1. :class:`Cluster` writes a watch record to ``__quotahost_watch``, and again every ten seconds.
2. Each broker then writes a look to ``__quotahost_looks`` every two seconds. The latest look of each broker is kept,
   except looks of another cluster and of brokers that the cluster doesn't list. ``rows.merged`` makes one look of them.
3. If the user opens a client or a volume, the watch record contains this question, and the brokers' next looks have the
   answers: the explanations from all brokers that have the client, or what fills the volume.

A client that may write to these topics can forge everything shown here. ``quotahost doctor --against`` shows who may.
"""

import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final, Self

from quotahost.base.errors import QuotahostError, Unusable
from quotahost.base.text import printable
from quotahost.cli.console import lines_of, table
from quotahost.cli.explain.answer import parse
from quotahost.cli.explain.broker_socket import UNREADABLE
from quotahost.cli.explain.explain import show as show_client
from quotahost.cli.explain.volume import VOLUMES, show_budgets, show_volume, volume_row
from quotahost.cli.top.live import Panel, Question
from quotahost.cli.top.rows import ClusterLook, ClusterUse, merged, numeric, require_one_client
from quotahost.kafka.commands import Watching
from quotahost.model import Client, ClientUse, Look, VolumeUse
from quotahost.model.use import MeasuredVolume
from quotahost.records.codec import Refused
from quotahost.records.look import BrokerLook, decode
from quotahost.records.watch import MOST_SECONDS, VolumeOf, Watch

_RENEW: Final = MOST_SECONDS / 3  # seconds
_AGAIN: Final = 2.0  # seconds between watch records while no broker answers, or a question has no answer yet
_STALE: Final = 15.0  # seconds after which a broker counts as silent: brokers publish every 2 s, or later if busy
_PATIENCE: Final = 10.0  # seconds to wait for the first looks of all brokers, or for their answers to a question
_LONGEST: Final = 30.0  # seconds to wait for the first look: a busy broker that has just created the topics is slow
_STEP: Final = 0.1  # seconds
_LEAVE: Final = 2.0  # seconds to write that the user has left; otherwise brokers notice after MOST_SECONDS
_MOST_KEYS: Final = 9  # the keys 1 to 9 open a volume
_ELSEWHERE: Final = "What a shorter retention would free: quotahost explain --volume on the broker's machine."


class Cluster:
    """Watches a cluster within a ``with`` block. At the end it tells the brokers that the user has left."""

    def __init__(self, config: Mapping[str, str], watch: str, looks: str) -> None:
        """Connect with librdkafka's ``config`` and the names of two topics. Raises Unusable if asking fails."""
        self._where = config, watch, looks
        self._watching, self._failed = Watching(*self._where), False
        # The name shows an operator who is watching; its random end keeps two watchers on one machine apart.
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._asked: Watch | None = None  # the last watch record
        self._asked_at = 0.0
        self._kept: dict[str, tuple[float, BrokerLook]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Tell the brokers. The consumer isn't closed: another thread may still use it, and the user shouldn't wait."""
        with suppress(QuotahostError):
            self._watching.ask(Watch(self._name, 0), _LEAVE)

    def look(self) -> ClusterLook:
        """Look at all brokers now; the first look waits some seconds for all. Raises Unusable if no broker answers."""
        if self._failed:
            # A broker that has just started may list no brokers, not even itself. Then librdkafka knows none to ask.
            self._watching, self._kept = Watching(*self._where), {}
        self._failed = True
        self._alive, self._cluster = self._watching.brokers()
        # Brokers that the cluster no longer lists are forgotten, which bounds the number of looks that are kept.
        self._kept = {broker: kept for broker, kept in self._kept.items() if broker in self._alive}
        first = not self._kept
        self._read(lambda: not first or self._alive <= self._fresh().keys())
        if fresh := self._fresh():
            self._failed = False
            return merged({broker: look.look for broker, look in fresh.items()}, self._alive)
        remedy = "run the task publish-usage on the brokers (client.quota.callback.tasks), by this version of quotahost"
        raise Unusable("no broker answers", remedy)

    def answer(self, question: Question) -> Panel:
        """The brokers' answers about a client or volumes. Raises QuotahostError if the question has no answer here."""
        if question.client is None and not question.volume:
            return listed({broker: look.look for broker, look in self._fresh().items()})
        # The answers to earlier questions are forgotten.
        self._kept = {broker: (at, replace(look, answers=(), opened=())) for broker, (at, look) in self._kept.items()}
        if question.client is not None:
            return self._explained(question.client)
        return self._opened(VolumeOf(question.broker, question.volume))

    def _explained(self, use: ClientUse) -> Panel:
        require_one_client(use)
        wanted = set(use.brokers) if isinstance(use, ClusterUse) else set()
        self._read(lambda: wanted <= self._answers().keys(), client=use.client)
        answers = self._answers()
        return Panel(_told(use, answers, sorted(wanted - answers.keys(), key=numeric)))

    def _opened(self, volume: VolumeOf) -> Panel:
        def told() -> list[str]:
            look = self._fresh().get(volume.broker)
            of_volume = [one for one in look.opened if one.name == volume.name] if look else []
            return opened(look.look, of_volume[0]) if look and of_volume else []

        self._read(lambda: bool(told()), volume=volume)
        if lines := told():
            return Panel(lines)
        raise Unusable(
            f"broker {printable(volume.broker)} doesn't tell what fills {printable(volume.name)}",
            "try again in a minute, or quotahost explain --volume on the broker's machine",
        )

    def _read(self, enough: Callable[[], bool], client: Client | None = None, volume: VolumeOf | None = None) -> None:
        """Ask the brokers and read their looks until ``enough`` returns true, or until a time-out."""
        began, watch = time.monotonic(), Watch(self._name, MOST_SECONDS, client=client, volume=volume)
        while True:
            # The record is repeated: a broker that has just started ignores older records, and if too many watchers
            # ask, a broker answers the latest ones.
            in_a_hurry = not self._fresh() or (client, volume) != (None, None)
            due = time.monotonic() - self._asked_at >= (_AGAIN if in_a_hurry else _RENEW)
            if due or watch != self._asked:
                self._watching.ask(watch)
                self._asked, self._asked_at = watch, time.monotonic()
            for key, value in self._watching.read(_STEP):
                if key.decode(errors="replace") not in self._alive:
                    continue
                with suppress(Refused):  # a record of another version, or forged by another client
                    look = decode(key, value)
                    # An unwatched look has no clients: the last watcher has left, or the broker has just started. The
                    # key is only a broker's id, and a topic that is mirrored into this one has the same ids.
                    if look.watched and look.cluster in ("", self._cluster):
                        self._kept[look.broker] = time.monotonic(), look
            if enough() or time.monotonic() - began >= (_PATIENCE if self._kept else _LONGEST):
                return

    def _fresh(self) -> dict[str, BrokerLook]:
        since = time.monotonic() - _STALE
        return {broker: look for broker, (at, look) in self._kept.items() if at >= since}

    def _answers(self) -> dict[str, tuple[str, ...]]:
        fresh = self._fresh().items()
        return {broker: told.lines for broker, look in fresh for told in look.answers if told.watcher == self._name}


def _told(use: ClientUse, answers: Mapping[str, tuple[str, ...]], missing: Sequence[str]) -> list[str]:
    lines = list[str]()
    for broker in [*sorted(answers, key=numeric), *missing]:
        lines += ["", f"---- broker {printable(broker)} ----"]
        if broker not in answers:
            lines.append("no answer: try again in a minute")
            continue
        try:
            # The answer is one line of JSON; an answer of an older version has other lines.
            (line,) = answers[broker]
            lines += lines_of(partial(show_client, parse(json.loads(line), use.client), use.quota_type))
        except UNREADABLE as problem:
            lines.append(f"it runs another version of quotahost ({printable(str(problem))})")
    return lines[1:]


# ---- the volumes of all brokers --------------------------------------------------------------------------------


def listed(looks: Mapping[str, Look]) -> Panel:
    """All volumes of these looks (by broker id), sorted by the space that is left, and the budgets of storage."""
    uses = [(broker, use) for broker, look in looks.items() for use in look.volumes]
    uses.sort(key=lambda pair: (_left(pair[1]), numeric(pair[0]), pair[1].name))
    volumes = [(broker, use) for broker, use in uses if not use.budget]
    rows = [
        [str(at) if at <= _MOST_KEYS else "", printable(broker), *volume_row(volume)]
        for at, (broker, volume) in enumerate(volumes, 1)
    ]
    lines = lines_of(lambda screen: screen.print(table(("", "broker", *VOLUMES), rows))) if rows else []
    if silent := sorted(looks.keys() - {broker for broker, _ in volumes}, key=numeric):
        brokers = f"broker{'s' if len(silent) > 1 else ''} {', '.join(map(printable, silent))}"
        lines += ["", f"unknown of {brokers}: no plugin watches volumes (factor.source, the task publish-volumes)"]
    lines += lines_of(partial(show_budgets, uses=[use for _, use in uses]))
    return Panel(lines, [Question(volume=volume.name, broker=broker) for broker, volume in volumes[:_MOST_KEYS]])


def _left(volume: VolumeUse) -> tuple[float, float]:
    return 1.0 if volume.factor is None else volume.factor, -volume.consumed / max(volume.capacity, 1)


def opened(look: Look, measured: MeasuredVolume) -> list[str]:
    """The text of ``quotahost explain --volume``, except what a shorter retention would free."""
    return [*lines_of(partial(show_volume, look=look, measured=measured)), "", _ELSEWHERE]
