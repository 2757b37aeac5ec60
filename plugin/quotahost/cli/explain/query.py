"""Asks a running broker of this machine, and turns every failure into an error with a remedy.

``brokers`` finds it and talks to it; ``answer`` reads what it says of a client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from quotahost.broker.host.looks import explained
from quotahost.cli.explain.answer import Answer, parse
from quotahost.cli.explain.brokers import Broker, Connection, NotAnswered, is_alive, running
from quotahost.errors import QuotahostError
from quotahost.model import Client

_PICK: Final = "--pid PID of the broker's process"


class Unanswered(QuotahostError):
    """No broker answered; the message's second line is what to do about it."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str) -> None:
        """Make the message of the two."""
        super().__init__(f"{problem}\n  -> {remedy}")


def named(pid: int | None, broker: int | None) -> str:
    """The broker with this process id or this node id, or without either the only one."""
    return str(pid) if pid is not None else "" if broker is None else f"broker:{broker}"


def ask(client: Client, which: str = "") -> Answer:
    """Ask a broker (:func:`named`) about a client.

    Raises:
        Unanswered: no such broker, several of them, or it can't be asked.
    """
    with Asked(which) as broker:
        try:
            return parse(explained(broker.ask, client), client)
        except ValueError as problem:
            raise broker.older(problem) from None


class Asked:
    """A broker that is asked. Use it in a ``with`` block."""

    def __init__(self, which: str = "") -> None:
        """Find the broker (:func:`named`) and connect to it.

        Raises:
            Unanswered: no such broker, several of them, or it can't be asked.
        """
        self._broker, self._version = find(which), ""
        try:
            self._connection = Connection(self._broker)
        except NotAnswered as problem:
            raise self._unanswered(problem) from None

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, *words: str) -> Any:
        """What the broker answers.

        Raises:
            Unanswered: it can't be asked.
        """
        try:
            answer = self._connection.ask(*words)
        except NotAnswered as problem:
            raise self._unanswered(problem) from None
        if isinstance(answer, dict) and isinstance(state := answer.get("state"), dict):
            self._version = str(state.get("version", ""))
        return answer

    def older(self, problem: ValueError) -> Unanswered:
        """The error that its answer has another form than that of this version."""
        version = f"{self._version}; " if self._version else ""
        return Unanswered(
            f"the quotahost of {_told([self._broker])} isn't of this version ({version}{problem})",
            "quotahost install --kafka-home DIR, and restart the broker",
        )

    def _unanswered(self, problem: NotAnswered) -> Unanswered:
        return Unanswered(
            f"{_told([self._broker])} can't be asked: {problem}", "see whether it still runs, and what its log says"
        )


def find(which: str = "") -> Broker:
    """The broker that is meant (:func:`named`).

    Raises:
        Unanswered: there is none, or there are several.
    """
    refused: list[str] = []
    brokers = running(refused)
    by_id = which.startswith("broker:")
    if which:
        brokers = [each for each in brokers if which in (str(each.pid), f"broker:{each.node}")]
    if len(brokers) == 1:
        return brokers[0]
    if brokers:
        raise Unanswered(
            f"several brokers with quotahost run here: {_told(brokers)}", "choose: --pid PID or --broker-id N"
        )
    mine = "as the broker's user, in its container if it has one"
    if which and not by_id:
        if not is_alive(int(which)):
            raise Unanswered(f"there is no process {which}", f"give {_PICK}")
        denied = [each for each in refused if each.startswith(f"pid {which} ")]
        if denied:
            raise Unanswered(f"can't ask {denied[0]}", f"run this {mine}")
        raise Unanswered(
            f"process {which} has no socket of quotahost's that this user may open",
            f"give {_PICK}; look for quotahost.admin in the broker's log",
        )
    wanted = f"broker {which.removeprefix('broker:')}" if by_id else "broker"
    details = f" ({'; '.join(refused)})" if refused else ""
    raise Unanswered(
        f"no {wanted} with quotahost was found that this user may ask on this machine{details}",
        f"run this on the broker's machine, {mine}; look for quotahost.admin in the broker's log",
    )


def _told(brokers: Sequence[Broker]) -> str:
    return ", ".join(f"pid {each.pid} (broker {each.node})" for each in brokers)
