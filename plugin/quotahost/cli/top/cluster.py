"""Looks at all brokers of a cluster again and again, by the records that they publish for those who watch."""

from __future__ import annotations

import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Final

from rich.console import Console

from quotahost.cli.console import lines_of
from quotahost.cli.explain.answer import parse
from quotahost.cli.explain.command import show as show_client
from quotahost.cli.explain.query import Unanswered
from quotahost.cli.top.merged import ClusterLook, ClusterUse, merged, numeric, several
from quotahost.cli.top.screen import Answer, Question
from quotahost.cli.top.volumes import listed, opened
from quotahost.errors import QuotahostError
from quotahost.kafka.watching import NotWatched, Watching
from quotahost.model import Client, ClientUse
from quotahost.records.codec import Refused
from quotahost.records.look import BrokerLook, decode
from quotahost.records.topics import LOOKS, WATCH
from quotahost.records.watch import MOST_SECONDS, VolumeOf, Watch
from quotahost.text import printable

_RENEW: Final = MOST_SECONDS / 3  # seconds
_AGAIN: Final = 2.0  # seconds, while nobody answers
_STALE: Final = 15.0  # seconds after which a broker counts as silent: it publishes every 2 s, later if it is busy
_PATIENCE: Final = 10.0  # seconds to wait for all brokers' first looks, or their answers to a question
_STEP: Final = 0.1  # seconds


class Cluster:
    """Use it in a ``with`` block; it tells the brokers at the end that nobody watches any more."""

    def __init__(self, config: Mapping[str, str], watch: str = WATCH.name, looks: str = LOOKS.name) -> None:
        """Connect.

        Args:
            config: librdkafka's, with ``bootstrap.servers``.
            watch: the name of ``watch.topic``.
            looks: the name of ``looks.topic``.

        Raises:
            NoAnswer: no broker answers.
            NotWatched: the brokers can't be asked.
        """
        self._watching = Watching(config, watch, looks)
        # Whoever looks into the topic sees who watches; the end tells two apart that watch from one place.
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._watch = Watch(self._name, MOST_SECONDS)
        self._asked_at = 0.0
        self._lock = threading.RLock()  # the thread that looks, and one that wants an answer
        self._known: dict[str, tuple[float, BrokerLook]] = {}
        self._newer = 0

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            with suppress(QuotahostError):
                self._watching.ask(Watch(self._name, 0))
            self._watching.close()

    def look(self) -> ClusterLook:
        """What the brokers say now. The first look waits for all of them, some seconds at most.

        Raises:
            NotWatched: no broker answers.
        """
        with self._lock:
            alive = self._watching.brokers()
            first = not self._known
            self._read(lambda: not first or alive <= self._fresh().keys())
            fresh = self._fresh()
        if not fresh:
            raise self._nobody()
        return merged({broker: look.look for broker, look in fresh.items()}, alive)

    def answer(self, question: Question) -> Answer:
        """What each broker that has the client says of it; all brokers' volumes; or what a volume's broker says.

        Raises:
            QuotahostError: the question can't be answered here.
        """
        use = question.client
        if use is not None:
            return self._explained(use)
        if question.volume:
            return self._opened(VolumeOf(question.broker, question.volume))
        with self._lock:
            return listed({broker: look.look for broker, look in self._fresh().items()})

    def _explained(self, use: ClientUse) -> Answer:
        if use.scope != "client":
            raise several(use)
        wanted = set(use.brokers) if isinstance(use, ClusterUse) else set()
        with self._lock, self._asking(Watch(self._name, MOST_SECONDS, client=use.client)):
            self._read(lambda: wanted <= self._answers().keys())
            answers = self._answers()
        return Answer(_told(use.client, use, answers, sorted(wanted - answers.keys())))

    def _opened(self, volume: VolumeOf) -> Answer:
        def found() -> Answer | None:
            look = self._fresh().get(volume.broker)
            measured = [each for each in look.opened if each.volume.name == volume.name] if look else []
            return Answer(opened(volume.broker, look.look, measured[0])) if look and measured else None

        with self._lock, self._asking(Watch(self._name, MOST_SECONDS, volume=volume)):
            self._read(lambda: found() is not None)
            answer = found()
        if answer is None:
            raise Unanswered(
                f"broker {volume.broker} doesn't tell what fills {printable(volume.name)}",
                "try again in a minute, or quotahost explain --volume on the broker's machine",
            )
        return answer

    # ---- under the lock ----

    @contextmanager
    def _asking(self, watch: Watch) -> Iterator[None]:
        """Within it, brokers are asked this; what they have said of other questions is forgotten."""
        self._known = {broker: (at, replace(look, answers=(), opened=())) for broker, (at, look) in self._known.items()}
        self._watch, self._asked_at = watch, 0.0
        try:
            yield
        finally:
            self._watch, self._asked_at = Watch(self._name, MOST_SECONDS), 0.0  # asked at the next look

    def _renew(self) -> None:
        # A broker that has just started follows the topic from then on, and takes no older record for a question.
        if time.monotonic() - self._asked_at >= (_RENEW if self._fresh() else _AGAIN):
            self._watching.ask(self._watch)
            self._asked_at = time.monotonic()

    def _read(self, enough: Callable[[], bool]) -> None:
        """Read what there is; until there is enough, but not longer than patience lasts."""
        end = time.monotonic() + _PATIENCE
        while True:
            self._renew()
            for key, value in self._watching.read(_STEP):
                self._take(key, value)
            if enough() or time.monotonic() >= end:
                return

    def _take(self, key: bytes | None, value: bytes) -> None:
        try:
            look = decode(key, value)
        except Refused:
            self._newer += 1  # of another version, or a stranger's
        else:
            self._known[look.broker] = time.monotonic(), look

    def _fresh(self) -> dict[str, BrokerLook]:
        since = time.monotonic() - _STALE
        return {broker: look for broker, (at, look) in self._known.items() if at >= since}

    def _answers(self) -> dict[str, tuple[str, ...]]:
        return {
            broker: answer.lines
            for broker, look in self._fresh().items()
            for answer in look.answers
            if answer.watcher == self._name
        }

    def _nobody(self) -> NotWatched:
        if self._newer:
            return NotWatched(
                f"the brokers answer, but none of their {self._newer} looks can be read: their quotahost is of another "
                "version",
                "use the quotahost of the brokers' version",
            )
        return NotWatched(
            "no broker answers", "run the task publish-usage on the brokers (client.quota.callback.tasks)"
        )


def _told(client: Client, use: ClientUse, answers: Mapping[str, tuple[str, ...]], missing: list[str]) -> list[str]:
    """The explanations of all brokers, one after the other."""

    def draw(screen: Console) -> None:
        for broker in sorted(answers, key=numeric):
            screen.print(f"\n---- broker {broker} ----", markup=False)
            try:
                show_client(parse(_explained(answers[broker]), client), use.quota_type, screen)
            except ValueError as problem:
                screen.print(f"its quotahost isn't of this version ({problem})", markup=False)
        for broker in missing:
            screen.print(f"\n---- broker {broker} ----\nno answer", markup=False)

    return "\n".join(lines_of(draw)).strip("\n").splitlines()


def _explained(lines: tuple[str, ...]) -> Any:
    """A broker's answer, which is one line of JSON; those of older versions have other lines.

    Raises:
        ValueError: it is that of another version.
    """
    (line,) = lines
    return json.loads(line)
