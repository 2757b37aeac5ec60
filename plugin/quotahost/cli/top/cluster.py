"""Looks at all brokers of a cluster for ``top``: says that somebody watches, and takes the newest look of each broker.

1. :class:`Cluster` writes to ``__quotahost_watch`` that somebody watches, and again every ten seconds.
2. Every broker then writes a look to ``__quotahost_looks`` every two seconds, and the newest of each broker is kept. A
   look whose broker the cluster doesn't list is a stranger's, and isn't. ``rows.merged`` makes one look of them.
3. A client or volume that the user opens is asked for by such a record, too, and the brokers' next looks have the
   answers: the explanations of all brokers that have the client, or what fills the volume.

Whoever may write to these topics can invent all that is shown here. ``quotahost doctor --against`` says who may.
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
_AGAIN: Final = 2.0  # seconds, while nobody answers, or not yet what was asked
_STALE: Final = 15.0  # seconds after which a broker counts as silent: it publishes every 2 s, later if it is busy
_PATIENCE: Final = 10.0  # seconds to wait for all brokers' first looks, or their answers to a question
_LONGEST: Final = 30.0  # seconds to wait for the first of them: a busy broker that has just made the topics takes long
_STEP: Final = 0.1  # seconds
_LEAVE: Final = 2.0  # seconds to say at the end that nobody watches; brokers find out after MOST_SECONDS themselves
_MOST_KEYS: Final = 9  # that open a volume
_ELSEWHERE: Final = "What a shorter retention would free: quotahost explain --volume on the broker's machine."


class Cluster:
    """Use it in a ``with`` block; it tells the brokers at the end that nobody watches any more."""

    def __init__(self, config: Mapping[str, str], watch: str, looks: str) -> None:
        """By librdkafka's configuration and the names of the two topics. Raises Unusable if nobody can be asked."""
        self._watching = Watching(config, watch, looks)
        # Whoever looks into the topic sees who watches; the end tells two apart that watch from one place.
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._asked: Watch | None = None  # last
        self._asked_at = 0.0
        self._known: dict[str, tuple[float, BrokerLook]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Another thread may still look: the user waits for none, so its consumer isn't closed."""
        with suppress(QuotahostError):
            self._watching.ask(Watch(self._name, 0), _LEAVE)

    def look(self) -> ClusterLook:
        """What brokers say now; the first look waits some seconds for all. Raises Unusable if none answers."""
        alive = self._alive = self._watching.brokers()
        # Whatever the cluster no longer lists is forgotten, so what is kept is bounded by its size.
        self._known = {broker: known for broker, known in self._known.items() if broker in alive}
        first = not self._known
        self._read(lambda: not first or alive <= self._fresh().keys())
        if fresh := self._fresh():
            return merged({broker: look.look for broker, look in fresh.items()}, alive)
        remedy = "run the task publish-usage on the brokers (client.quota.callback.tasks), of this quotahost's version"
        raise Unusable("no broker answers", remedy)

    def answer(self, question: Question) -> Panel:
        """What brokers say of a client, or of volumes. Raises QuotahostError if the question can't be answered here."""
        if question.client is None and not question.volume:
            return listed({broker: look.look for broker, look in self._fresh().items()})
        # What they have said of other questions is forgotten.
        self._known = {broker: (at, replace(look, answers=(), opened=())) for broker, (at, look) in self._known.items()}
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
        """Read what there is, and ask this; until there is enough, but not longer than patience lasts."""
        began, watch = time.monotonic(), Watch(self._name, MOST_SECONDS, client=client, volume=volume)
        while True:
            # A broker that has just started follows the topic from then on, and takes no older record for a question.
            # Of too many who ask, a broker answers those who asked last.
            in_a_hurry = not self._fresh() or (client, volume) != (None, None)
            due = time.monotonic() - self._asked_at >= (_AGAIN if in_a_hurry else _RENEW)
            if due or watch != self._asked:
                self._watching.ask(watch)
                self._asked, self._asked_at = watch, time.monotonic()
            for key, value in self._watching.read(_STEP).items():
                if key.decode(errors="replace") not in self._alive:
                    continue
                with suppress(Refused):  # of another version, or a stranger's
                    look = decode(key, value)
                    # Without this watch it names no client: the last watcher has left, or the broker has just started.
                    if look.watched:
                        self._known[look.broker] = time.monotonic(), look
            if enough() or time.monotonic() - began >= (_PATIENCE if self._known else _LONGEST):
                return

    def _fresh(self) -> dict[str, BrokerLook]:
        since = time.monotonic() - _STALE
        return {broker: look for broker, (at, look) in self._known.items() if at >= since}

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
            # The answer is one line of JSON; those of older versions have other lines.
            (line,) = answers[broker]
            lines += lines_of(partial(show_client, parse(json.loads(line), use.client), use.quota_type))
        except UNREADABLE as problem:
            lines.append(f"its quotahost isn't of this version ({printable(str(problem))})")
    return lines[1:]


# ---- the volumes of all brokers --------------------------------------------------------------------------------


def listed(looks: Mapping[str, Look]) -> Panel:
    """All volumes by what is left of them, of looks by the brokers' ids, and the budgets of storage."""
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
        lines += ["", f"unknown of {brokers}: nothing watches volumes there (factor.source, the task publish-volumes)"]
    lines += lines_of(partial(show_budgets, uses=[use for _, use in uses]))
    return Panel(lines, [Question(volume=volume.name, broker=broker) for broker, volume in volumes[:_MOST_KEYS]])


def _left(volume: VolumeUse) -> tuple[float, float]:
    return 1.0 if volume.factor is None else volume.factor, -volume.consumed / max(volume.capacity, 1)


def opened(look: Look, measured: MeasuredVolume) -> list[str]:
    """What ``quotahost explain --volume`` says of it, but for what a shorter retention would free."""
    return [*lines_of(partial(show_volume, look=look, measured=measured)), "", _ELSEWHERE]
