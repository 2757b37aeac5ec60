"""The questions of an operator that need the cluster: how long topics are kept, for ``quotahost explain --volume``."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from quotahost.background import start_daemon
from quotahost.broker.host.shim import Shim

#: The properties of a topic that decide what is deleted on a broker, and when.
RETENTION: Final = frozenset(
    {
        "retention.ms",
        "retention.bytes",
        "cleanup.policy",
        "remote.storage.enable",
        "local.retention.ms",
        "local.retention.bytes",
    }
)


class Questions:
    """Answers each question on a thread of its own: the cluster may take ten seconds, and the host serves meanwhile."""

    def __init__(self, shim: Shim, answer: Callable[[str, str], None]) -> None:
        """``answer`` takes the ticket of a question and a JSON text: the answer, or an object with its ``error``."""
        self._shim, self._answer = shim, answer

    def handle(self, ticket: str, words: Sequence[str]) -> None:
        """Answer a question like ``retention a,b``; its ticket comes back with the answer."""
        start_daemon("question", lambda: self._answer(ticket, self._text(words)), self._shim.detach)

    def _text(self, words: Sequence[str]) -> str:
        try:
            match words:
                case ["retention", topics]:
                    answer: Any = self.retention([each for each in topics.split(",") if each])
                case _:
                    answer = {"error": f"unknown question: {' '.join(words)}"}
        # Any exception: it may come from Java, and who asked must hear of it.
        except Exception as problem:
            answer = {"error": str(problem)}
        return json.dumps(answer)

    def retention(self, topics: Sequence[str]) -> list[tuple[str, str, str]]:
        """Topic, name and value of each property of RETENTION; a topic that doesn't exist has none.

        Raises:
            ConnectionError: the cluster doesn't answer.
        """
        if not topics:
            return []
        rows = self._shim.configs("TOPIC", topics)
        return [(row.owner, row.name, row.value) for row in rows if row.name in RETENTION]
