"""A broker's answer about one client: the lines of ``org.quotahost.explain.Explain``, as values.

Java prints a line for the broker, a line for each fact that all quota types share, and a line for each quota type,
with fields divided by tabs. ``wording`` makes sentences of the values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from quotahost.host.messages import plain
from quotahost.model import Client, QuotaType, State
from quotahost.model.client_use import Bound


def _finite(value: object) -> float | None:
    # Java writes an unlimited base as NaN and an unlimited limit as null.
    number = math.nan if value in (None, "null") else float(str(value))
    return number if math.isfinite(number) else None


def _listed(value: object) -> object:
    return tuple(filter(None, value.split(","))) if isinstance(value, str) else value


Rate = Annotated[float | None, BeforeValidator(_finite)]  # in the quota type's unit, a second
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class QuotaState(BaseModel):
    """What the broker's table has for the client and one quota type; the fields are in the order of Java's line.

    Attributes:
        type: the quota type.
        user: the user of Kafka's metric tags, sanitized; the tags say who shares the quota.
        client_id: the client-id of the tags.
        base: the quota's rate; None is unlimited.
        limit: the limit that Kafka gets; None is unlimited.
        place: ``known``, or ``newcomer`` if the client has no place in the table.
        supplier: the supplier that gave the quota; of an exempt client the reason, of a newcomer the supplier that
            failed; "" if there is none.
        exempt: no quota applies to the client.
        stand_in: the rate that the factor multiplies instead of an unlimited one; None if it needs none.
        floored: the limit is the floor; by the factor alone it would be lower.
        stand_in_from: ``measured`` if that rate was measured when the factor fell, else it is the newcomers' rate.
        failed: a supplier has failed for this client lately.
        rate: what Kafka measures for all who share the quota; None if it measures nothing.
        delay: by how many milliseconds Kafka has delayed them lately; None if it hasn't.
        tokens: how many partition mutations are left in this node's bucket, below 0 if some are owed; None if there
            is no bucket, or for another type. Only the active controller charges its bucket.
        affected_topic: the topic for whose sake the client is slowed while others are not (``factor.scope=topics``);
            "" if it is not. User, client-id and limit are then those of the slowed, rate and delay of all in the scope.
        affected_place: where that topic has its replica: "broker 3, volume /dev/sdb".
        bound: by what the client is held back now.
        shadow_supplier: the supplier in shadow that would give the quota; "" if none would.
        shadow_user, shadow_client_id: the tags of the scope that would share it.
        shadow_base: its rate; None is unlimited.
        shadow_limit: the limit that Kafka would get; None is unlimited.
        shadow_rate: what is measured of that scope; None if that can't be told.
        shadow_factor_limit: the limit that the factor would make of the quota in force, ``null`` for unlimited; "" if
            it is not in shadow or not for this client.
        others: what the other suppliers would have given, where all are asked (``supplier.combine``).
    """

    model_config = ConfigDict(frozen=True)

    type: QuotaType
    user: str
    client_id: str
    base: Rate
    limit: Rate
    place: str
    supplier: str
    exempt: bool
    stand_in: Rate
    floored: bool
    stand_in_from: str
    failed: bool
    rate: Rate
    delay: Rate
    tokens: Rate
    affected_topic: str = ""
    affected_place: str = ""
    bound: Bound = Bound.NOTHING
    shadow_supplier: str = ""
    shadow_user: str = ""
    shadow_client_id: str = ""
    shadow_base: Rate = None
    shadow_limit: Rate = None
    shadow_rate: Rate = None
    shadow_factor_limit: str = ""
    others: tuple[tuple[str, Rate], ...] = ()

    @property
    def is_newcomer(self) -> bool:
        """Whether the client has no place in the table and shares the newcomers' quota."""
        return self.place == "newcomer"


class Answer(BaseModel):
    """A broker's whole answer; Java names the facts with hyphens.

    Attributes:
        pid: the process id of the broker.
        node: its node id, "" if it isn't known.
        mode: ``enforce`` or ``shadow``.
        shadow: the rules that are not enforced, as the property ``shadow`` has them.
        factor: the factor in force; ``limit_factor`` is what limits are multiplied by at the moment.
        factor_types: the quota types that it multiplies.
        affected_topics: how many topics the factor is for; -1 if it is for all clients.
        fence_passes: whether the client's requests pass the fence while it is closed.
        creation_refused: whether topics and partitions are created for those alone who pass the fence.
        topics_threshold: bytes/s that the broker is expected to take in; 0 without topic quotas.
        topics_rate: bytes/s that it does take in.
        topics_over: the topics over their thresholds, from which producers are turned back.
        topics_in_shadow: those of them whose thresholds are in shadow: nobody is turned back.
        source: the factor source that answers, where one stands in for another; "" where none does.
        controller: the node id of the active controller; "" if this node knows of none.
        mutation_seconds: for how many seconds a bucket of partition mutations saves up its rate.
        clients: how many clients have a place in the table, of ``clients_max``.
        quotas: one for each quota type.
    """

    model_config = ConfigDict(frozen=True, alias_generator=lambda name: name.replace("_", "-"), populate_by_name=True)

    pid: str
    node: str
    client: Client
    mode: str
    shadow: Names = ()
    state: State
    factor: float
    limit_factor: float
    cause: str
    factor_types: Names
    affected_topics: int = -1
    fence_installed: bool
    fence_closed: bool
    fence_passes: bool
    creation_refused: bool
    topics_threshold: float
    topics_rate: float
    topics_over: Names
    topics_in_shadow: Names = ()
    source: str
    controller: str
    mutation_seconds: float
    clients: int
    clients_max: int
    quotas: tuple[QuotaState, ...]

    @property
    def is_shadow(self) -> bool:
        """Whether quotahost only shows what it would enforce."""
        return self.mode == "shadow"

    @property
    def factor_in_shadow(self) -> bool:
        """Whether the factor and the fence are only shown."""
        return self.is_shadow or "factor" in self.shadow

    @property
    def is_for_topics(self) -> bool:
        """Whether the factor is only for those who write to affected topics."""
        return self.affected_topics >= 0

    @property
    def is_active_controller(self) -> bool:
        """Whether partition mutations are counted on this node."""
        return self.controller == self.node != ""


def escaped(text: str) -> str:
    """As an argument that survives every locale: printable ASCII, all else in Java's ``\\uXXXX``."""
    # Java's characters are UTF-16 units, and a name may contain half of a pair, hence surrogatepass.
    units = memoryview(text.encode("utf-16-be", "surrogatepass")).cast("B")
    codes = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(chr(c) if 0x20 <= c <= 0x7E and c != 0x5C else f"\\u{c:04x}" for c in codes)


def parse(lines: Iterable[str], client: Client) -> Answer:
    """The answer that these lines are.

    Raises:
        ValueError: these are not the lines of this version's Explain.
    """
    rows = [[plain(field) for field in line.split("\t")] for line in lines]
    # Exactly one such line; with none or two the unpacking raises the ValueError.
    ((pid, node),) = (row[1:] for row in rows if row[0] == "broker")
    facts: dict[str, object] = {row[1]: row[2] for row in rows if row[0] == "state"}
    try:
        quotas = [parse_quota(row[1:]) for row in rows if row[0] == "quota"]
        # A fact that Java no longer sends, or sends in another form, is an error of the model, which names it.
        return Answer.model_validate(facts | {"pid": pid, "node": node, "client": client, "quotas": quotas})
    except ValidationError as error:
        wrong = error.errors(include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, wrong['loc']))}: {wrong['msg']}") from None


def parse_quota(row: list[str]) -> QuotaState:
    """The state of one quota type, out of the fields that follow ``quota``.

    Raises:
        ValidationError: a field is missing or wrong.
    """
    # With supplier.combine=most-constraining this field has tabs of its own: NAME=RATE of each other supplier.
    supplier, *others = row[6].split("\t") if len(row) > 6 else [""]
    # Not strict: pydantic names a field that a row of another version lacks.
    facts: dict[str, object] = dict(zip(QuotaState.model_fields, row, strict=False))
    rates = [each.partition("=")[::2] for each in others]
    return QuotaState.model_validate(facts | {"supplier": supplier, "others": rates})
