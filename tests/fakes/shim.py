"""A fake of the Java half: a test scripts the batches that the host takes, and inspects the calls that it made."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from quotahost.broker.host.loop import Host
from quotahost.broker.host.messages import NEWCOMER, Batch, Event, Row, Scoped, encode
from quotahost.broker.host.protocol import Shim
from quotahost.model import Client, Factor, QuotaType
from quotahost.model.volumes import Affected, SlowedBudget
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX
from tests.fakes import dump
from tests.fakes.plugin_context import Clock


def node_of(node_id: int, *brokers: str) -> dict[str, str]:
    """Properties by which brokers have these principals at each other's listeners; by default ANONYMOUS."""
    named = [name for name in brokers if name != "ANONYMOUS"]
    listener = "SASL_PLAINTEXT" if named else "PLAINTEXT"
    jaas = {f"listener.name.{listener.lower()}.plain.sasl.jaas.config": f'x required username="{n}";' for n in named}
    return {
        "node.id": str(node_id),
        "listeners": f"{listener}://127.0.0.1:1,CONTROLLER://:2",
        "security.inter.broker.protocol": listener,
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT",
        # Only nodes connect to the controllers' listener; if clients authenticate, an ANONYMOUS peer is a node.
        **({"controller.listener.names": "CONTROLLER"} if "ANONYMOUS" in brokers else {}),
        **jaas,
    }


#: The default answers to calls about the cluster and Kafka's counters.
_ANSWERS: Final[dict[str, Any]] = {
    "cluster": ["the-cluster", [[1, False]]], "configs": [], "log_dirs": [], "offline_log_dirs": [], "replicas": [],
    "load": [-1, -1, -1, {}],
}  # fmt: skip


@dataclass
class FakeShim(Shim):
    """Returns the batches of its script, one for each ``take``, and then a closing batch."""

    given: dict[str, str] = field(default_factory=dict)  # the properties at the host's start, without their prefix
    node: dict[str, str] = field(default_factory=lambda: node_of(1))
    #: Batches, and functions that a test runs between them on the host thread.
    script: deque[Batch | Callable[[], None]] = field(default_factory=deque)
    table: dict[Client, Row] = field(default_factory=dict)  # the row of each client that was published last
    asked: Sequence[str] = ()
    in_force: list[dict[str, str]] = field(default_factory=list)  # the properties of each ``ready``
    refused: str | None = None
    factors: list[float] = field(default_factory=list)  # each new value that the host has set
    affected: list[Affected | None] = field(default_factory=list)  # the affected topics of each ``set_factor``
    failed: list[str] = field(default_factory=list)  # the plugin of every counted failure
    lines: list[str] = field(default_factory=list)  # the messages in the broker's log
    configured: Settings | None = None
    measured: Collection[QuotaType] = ()
    #: For each client, the client-ids of its principal whose answers differ, or messages.EACH.
    distinct: dict[Client, frozenset[str] | int] = field(default_factory=dict)
    has_fence: bool = False
    second_life: bool = False
    last: Scoped = field(default_factory=lambda: Scoped(Factor(1.0)))  # the factor of the latest ``set_factor``
    budgets: list[tuple[SlowedBudget, ...]] = field(default_factory=list)  # the budgets of each ``set_budgets``
    of_types: list[dict[QuotaType, Factor]] = field(default_factory=list)  # the arguments of ``set_factors_of_types``
    shown: dict[tuple[str, str, str], float] = field(default_factory=dict)  # metrics by type, name and attribute
    again: list[Client] = field(default_factory=list)
    #: Answers by the question's first word; an exception is raised. Other questions are answered with ``shown``.
    answers: dict[str, Any] = field(default_factory=lambda: {"state": dump.state(), "uses": dump.uses(), "marks": []})
    questions: list[tuple[str, ...]] = field(default_factory=list)
    #: The host's answers to Java's questions, by ticket; the answer to "validate" is why the properties are refused.
    answered: dict[str, Any] = field(default_factory=dict)
    #: Answers by the call's name; an exception is raised, and a function is called for the answer.
    told: dict[str, Any] = field(default_factory=dict)
    called: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)  # the names and arguments of these calls
    clock: Clock = field(default_factory=Clock)  # the host's clock
    pace: float = 0.0  # seconds by which each ``take`` advances the clock

    def arrive(self, *clients: tuple[str, str]) -> None:
        self.script.append(Batch([Client(*c) for c in clients]))

    def post(self, kind: str, *fields: Any) -> None:
        self.script.append(Batch([], [Event(kind, fields)]))

    def idle(self, times: int = 1) -> None:
        self.script.extend(Batch([]) for _ in range(times))

    def passes(self, seconds: float) -> None:
        self.script.append(lambda: setattr(self.clock, "now", self.clock.now + seconds))

    def reconfigure(self, **changes: str) -> None:
        self.post("reconfigure", {PREFIX + name: value for name, value in (self.given | changes).items()})

    def validate(self, ticket: str, **changes: str) -> None:
        self.post("validate", ticket, {PREFIX + name: value for name, value in (self.given | changes).items()})

    # ---- quotahost.broker.host.protocol.Shim ----

    def _call(self, name: str, *arguments: object) -> Any:
        """Answers the calls that have no method below."""
        self.called.append((name, arguments))
        own = {"fence": self.has_fence, "broker": self.node, "restarted": self.second_life}
        answer = {**_ANSWERS, **own, **self.told}.get(name)
        if isinstance(answer, Exception):
            raise answer
        return answer() if callable(answer) else answer

    _ask_cluster = _call

    def properties(self) -> dict[str, str]:
        # Each host makes this call first; if an earlier host was ready, this one is in the broker's second life.
        self.second_life = self.second_life or bool(self.in_force)
        return {PREFIX + name: value for name, value in self.given.items()}

    def started_with(self) -> dict[str, str]:
        return {PREFIX + name: value for name, value in self.given.items()}

    def ready(self, asked: Sequence[str], given: Mapping[str, str]) -> None:
        self.asked = asked
        self.in_force.append({name.removeprefix(PREFIX): value for name, value in given.items()})

    def refuse(self, problem: str) -> None:
        self.refused = problem

    def configure(self, settings: Settings, measured: Collection[QuotaType]) -> None:
        self.configured, self.measured = settings, measured

    def take(self, timeout: float) -> Batch:
        self.taken = self._take()
        return self.taken

    def _take(self) -> Batch:
        self.clock.now += self.pace
        if self.again:
            again, self.again = list(dict.fromkeys(self.again)), []
            return Batch(again)
        if not self.script:
            return Batch([], closing=True)
        step = self.script.popleft()
        if isinstance(step, Batch):
            return step
        step()
        return Batch([])

    def ask_again(self, principal: str | None, client_id: str | None) -> None:
        self.again += [c for c in self.table if principal in (None, c.principal) and client_id in (None, c.client_id)]

    def ask_again_the_failed(self) -> None:
        self.again += [c for c, row in self.table.items() if any(each.code == NEWCOMER for each in row.answers)]

    def publish(self, numbers: Sequence[int], rows: Iterable[Row], distinct_ids: Iterable[frozenset[str]]) -> None:
        rows, ids = list(rows), list(distinct_ids)
        encode([rows, *map(sorted, ids)])  # raises if the call could not be sent
        for client, number in zip(self.taken.clients, numbers, strict=True):
            row = self.table[client] = rows[number]
            self.distinct[client] = row.distinct if row.distinct < 0 else ids[row.distinct]

    def keystores(self, ssl: Mapping[str, str]) -> dict[str, str]:
        return {"ssl.ca.pem": f"CA of {len(ssl)}", "principal": "CN=broker"}

    def answer(self, ticket: str, answer: object) -> None:
        self.answered[ticket] = answer

    def ask(self, *words: str) -> Any:
        self.questions.append(words)
        answer = self.answers.get(words[0], [[*key, value] for key, value in self.shown.items()])
        if isinstance(answer, Exception):
            raise answer
        if words[0] == "uses":
            return {**answer, "uses": answer["uses"][: int(words[1])]}
        return answer

    def gauge(self, type: str, name: str, attribute: str, value: float) -> None:
        self.shown[(type, name, attribute)] = value

    def count(self, type: str, name: str, attribute: str, by: float = 1.0) -> None:
        self.shown[(type, name, attribute)] = self.shown.get((type, name, attribute), 0.0) + by
        if (type, attribute) == ("Plugin", "Errors") and by:
            self.failed.append(name)

    def forget(self, type: str, name: str) -> None:
        for key in [key for key in self.shown if key[:2] == (type, name)]:
            del self.shown[key]

    def set_factors_of_types(self, factors: Mapping[QuotaType, Factor]) -> None:
        self.of_types.append(dict(factors))

    def set_budgets(self, budgets: Sequence[SlowedBudget]) -> None:
        self.budgets.append(tuple(budgets))

    def factor(self) -> Scoped:
        return self.last

    def set_factor(self, new: Scoped) -> None:
        self.affected.append(new.affected)
        if new.factor.value != self.last.factor.value:
            self.factors.append(new.factor.value)
        self.last = new

    def log(self, logger: str, level: int, message: str) -> None:
        self.lines.append(message)

    # ---- for tests ----

    def arguments(self, name: str) -> list[Any]:
        """The arguments of each call of this name."""
        return [list(arguments) for called, arguments in self.called if called == name]

    def rate(self, principal: str, client_id: str) -> float | None:
        """The rate that the host published for a client; None if unlimited."""
        return self.table[Client(principal, client_id)].answers[0].rate


def serve(shim: FakeShim) -> FakeShim:
    """Runs a host to the end of the shim's script."""
    Host(shim, shim.clock).run()
    return shim
