"""The form of quotahost's own file and of Strimzi's KafkaUser, checked by pydantic.

A scalar comes as text, see ``tree``. Each validator's error says what to write; ``document`` puts the place before it.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quotahost.declared.entities import DEFAULT, DEFAULT_NAME, OF_ADDRESSES, OF_CLIENTS, OF_CLUSTER, Entity
from quotahost.declared.fields import Address, ClusterRate, Count, Name, Percent, Rate, Whole


class Form(BaseModel):
    """A mapping without unknown keys, whose errors don't repeat its values: ``document`` shows them once."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, populate_by_name=False)


class Entry(Form):
    """Quotas of one entity."""

    def entity(self) -> Entity:
        """Whom it is for."""
        raise NotImplementedError

    def quotas(self) -> dict[str, float]:
        """Its rates, by key."""
        raise NotImplementedError


class ClientEntry(Entry):
    """Quotas of Kafka's own for one entity, by Kafka's keys."""

    user: Name = None
    client_id: Name = Field(None, alias="client-id")
    ip: Address = None
    producer_byte_rate: Whole = None
    consumer_byte_rate: Whole = None
    request_percentage: Percent = None
    controller_mutation_rate: Rate = None
    connection_creation_rate: Count = None

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        named = self.model_fields_set & {"user", "client_id", "ip"}
        if not named:
            raise ValueError("names nobody; write user, client-id, both, or ip")
        if "ip" in named and len(named) > 1:
            raise ValueError("has an ip beside a user or client-id; Kafka has quotas for either, so write two entries")
        allowed = OF_ADDRESSES if "ip" in named else OF_CLIENTS
        if wrong := sorted(self.quotas().keys() - allowed):
            raise ValueError(f"has {wrong[0]}, which Kafka has not for {self.entity()}; write {', '.join(allowed)}")
        return self

    def entity(self) -> Entity:
        """Whom it is for."""
        return Entity(self.user, self.client_id, self.ip)

    def quotas(self) -> dict[str, float]:
        """By Kafka's keys."""
        return _given(self, {**OF_CLIENTS, **OF_ADDRESSES})


class ClusterEntry(Entry):
    """Quotas of the supplier ``cluster-quota`` for one user, client-id, or both."""

    user: Name = None
    client_id: Name = Field(None, alias="client-id")
    produce: ClusterRate = None
    fetch: ClusterRate = None

    @model_validator(mode="after")
    def _one_entity(self) -> Self:
        if not self.model_fields_set & {"user", "client_id"}:
            raise ValueError(f"names nobody; write user, client-id, or both; user: {DEFAULT_NAME} is for all others")
        if self.client_id is DEFAULT or (self.user is DEFAULT and self.client_id is not None):
            raise ValueError(
                f"has a default that cluster-quota has not; write user: {DEFAULT_NAME} alone, for all others"
            )
        return self

    def entity(self) -> Entity:
        """Whom it is for."""
        return Entity(self.user, self.client_id, in_cluster=True)

    def quotas(self) -> dict[str, float]:
        """By type."""
        return _given(self, OF_CLUSTER)


def _given(entry: BaseModel, keys: Any) -> dict[str, float]:
    return {key: value for key in keys if (value := getattr(entry, key, None)) is not None}


class OwnDocument(Form):
    """The whole of a document of quotahost's own."""

    prune: bool = False
    quotas: list[ClientEntry] | None = None
    cluster_quotas: list[ClusterEntry] | None = Field(None, alias="cluster-quotas")


class _Metadata(BaseModel):
    name: str = Field(min_length=1)


class _Authentication(BaseModel):
    type: str | None = None


class StrimziQuotas(BaseModel):
    """``spec.quotas`` of a KafkaUser."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    producer_byte_rate: Whole = Field(None, alias="producerByteRate")
    consumer_byte_rate: Whole = Field(None, alias="consumerByteRate")
    request_percentage: Percent = Field(None, alias="requestPercentage")
    controller_mutation_rate: Rate = Field(None, alias="controllerMutationRate")


class _Spec(BaseModel):
    authentication: _Authentication | None = None
    quotas: StrimziQuotas | None = None


class KafkaUser(BaseModel):
    """What a KafkaUser says of quotas; all else in it is left to Strimzi's user operator."""

    metadata: _Metadata
    spec: _Spec | None = None

    def entity(self) -> Entity:
        """Kafka's name of the user: ``KafkaUserModel.getUserName`` of Strimzi's user operator."""
        name = self.metadata.name
        method = self.spec and self.spec.authentication and self.spec.authentication.type
        return Entity(user=f"CN={name}" if method in ("tls", "tls-external") else name)

    def quotas(self) -> dict[str, float]:
        """By Kafka's keys. The operator takes away the quotas of a user without ``spec.quotas``, so it has none."""
        return _given(self.spec.quotas, OF_CLIENTS) if self.spec and self.spec.quotas else {}
