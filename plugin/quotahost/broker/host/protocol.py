"""The calls that the host makes into the broker's JVM, each declared once.

Python makes every call, and Java answers (``org.quotahost.host.Calls``). A call is the list of its name and its
arguments, encoded by ``messages.encode``; its answer is the list of a problem, or null, and the value. Two transports
carry the same bytes: that of ``bridge`` by JPype where Python runs in the broker's own process, and that of ``child``
by a pipe where it has a process of its own.

The jar contains this declaration (``resource``), so that Java knows version, bounds and names from here, and
``docs/reference/host-protocol.md`` shows it (``table``). VERSION grows with every change that an older end would not
understand: a Python with another version is refused at its first call.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Final

from quotahost.broker.host.shim import Shim

VERSION: Final = 1

#: How many bytes a call may have, by what is in it: numbers and names, a text of a plugin, lists of any length.
_FEW: Final = 64 * 1024
_TEXT: Final = 1024 * 1024
_MANY: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        name: by which Java finds what answers it, and as a rule that of a method of ``shim.Shim``.
        arguments: their names and types in order; a list's members are in brackets.
        answer: the type of the answer; "" where there is none.
        most: how many bytes it may have.
        waits: whether the caller waits for the answer, or at least for the end of the call.
        blocks: whether the answer may take long, as it depends on the cluster, on a disk, or on what happens next.
        doc: what it does, where no method of the shim tells it.
    """

    name: str
    arguments: str = ""
    answer: str = ""
    most: int = _FEW
    waits: bool = True
    blocks: bool = False
    doc: str = ""

    def sentence(self) -> str:
        """What it does, the first paragraph of it."""
        told = self.doc or inspect.getdoc(getattr(Shim, self.name)) or ""
        return " ".join(told.partition("\n\n")[0].split())


_ALL: Final = (
    Call(
        "hello", "version: long, quotahost: text", doc="The first call: with which protocol and version Python comes."
    ),
    Call("properties", answer="[name, value, ...: text]"),
    Call("broker", answer="[name, value, ...: text]"),
    Call("starting", "timeout_ms: long"),
    Call("built", blocks=True),
    Call("ready", "live: [text]", most=_MANY),
    Call("refuse", "problem: text", most=_TEXT),
    Call("restarted", answer="bool"),
    Call(
        "configure",
        "table: [clients_max: long, idle_seconds: long, floor_bytes: double, factored: [text], all_in_shadow: bool, "
        "newcomers: doubles, measured: [text]], shadow: [text], "
        "tap: [windows: long, window_ms: long, max_mute_ms: long], creation_allowed: bool, "
        "lease: [validity_ms: long, fallback: text], topics: [total: double, "
        "names: [text], rates: doubles, spared: [text], error: text, all_in_shadow: bool, in_shadow: [text]]",
        most=_MANY,
    ),
    Call("take", "timeout_ms: long", "[batch: long, what: bytes, closing: bool]", blocks=True),
    Call("ask_again", "principal: text or null, client_id: text or null"),
    Call("ask_again_the_failed"),
    Call(
        "publish",
        "batch: long, rows: ints, codes: ints, rates: doubles, groups: [text], sources: ints, suppliers: [text], "
        "distinct: ints, distinct_ids: [bytes, each a list of texts], shadows: [text]",
        "long",
        most=_MANY,
    ),
    Call("fence", answer="bool"),
    Call("keystores", "ssl: [name, value, ...: text]", "[name, value, ...: text]", most=_TEXT, blocks=True),
    Call("connect", "client: [name, value, ...: text]", most=_TEXT, waits=False),
    Call("cluster", answer="[cluster_id: text, [[broker: long, fenced: bool]]]", blocks=True),
    Call("configs", "type: text, names: [text]", "[[owner, name, source, value: text]]", most=_MANY, blocks=True),
    Call(
        "log_dirs",
        "brokers: ints",
        "[[broker: long, path: text, total: long or null, usable: long or null, error: text]]",
        most=_TEXT,
        blocks=True,
    ),
    Call("offline_log_dirs", answer="[text]"),
    Call("ask", "words: [text]", "text", most=_TEXT, blocks=True),
    Call("answer", "ticket: text, text: text", most=_MANY),
    Call("held", "text: text", most=_MANY, waits=False),
    Call("gauge", "type: text, name: text, attribute: text, value: double", waits=False, most=_TEXT),
    Call("count", "type: text, name: text, attribute: text, by: double", waits=False, most=_TEXT),
    Call("forget", "type: text, name: text", waits=False, most=_TEXT),
    Call("factor", answer="[value: double, cause: text]"),
    Call(
        "set_factor",
        "value: double, cause: text, affected: null or [topics: [text], places: [text], held: [bool]], full: bool",
        most=_MANY,
    ),
    Call("exempt", "principals: [text], client_ids: [text], internal_client_ids: text", most=_MANY),
    Call("spare", "topics: [text]", most=_MANY),
    Call("log", "logger: text, level: long, message: text", waits=False, most=_TEXT),
)
CALLS: Final = {call.name: call for call in _ALL}


def resource() -> str:
    """The declaration as Java reads it: ``NAME=BYTES`` and what the call is, in a properties file."""
    kinds = {call.name: f"{' waits' * call.waits}{' blocks' * call.blocks}" for call in _ALL}
    return f"version={VERSION}\n" + "".join(f"call.{call.name}={call.most}{kinds[call.name]}\n" for call in _ALL)


def table() -> str:
    """All calls as a Markdown table."""
    head = (
        "| call | arguments | answer | the caller waits | may take long | bytes at most | what it does |\n" + "|---" * 7
    )
    return f"{head}|\n" + "\n".join(map(_row, _ALL))


def _row(call: Call) -> str:
    cells = [f"`{call.name}`", _code(call.arguments), _code(call.answer), _yes(call.waits), _yes(call.blocks)]
    return f"| {' | '.join([*cells, f'{call.most:,}', call.sentence()])} |"


def _code(types: str) -> str:
    return f"`{types}`" if types else ""


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"
