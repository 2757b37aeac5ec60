"""What the pipeline is told: by options, by ``QUOTAHOST_PIPELINE_*`` in the environment, by a file for the secrets."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Self

import javaproperties
from pydantic import BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from quotahost.errors import QuotahostError
from quotahost.units import Duration

#: By it the brokers' fence knows the pipeline where nobody authenticates; elsewhere its principal must be
#   excluded.
CLIENT_ID: Final = "quotahost-pipeline"
_ENV: Final = "QUOTAHOST_PIPELINE_"


class OptionsError(QuotahostError, ValueError):
    """One or more options are wrong; the message names each, and the remedy."""

    exit_code = 2


def _names(value: object) -> object:
    return (
        tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
    )


Topics = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_names)]


class Options(BaseSettings):
    """Everything that can be set; a field ``x_y`` is the option ``--x-y`` and ``QUOTAHOST_PIPELINE_X_Y``."""

    model_config = SettingsConfigDict(env_prefix=_ENV, extra="forbid", frozen=True, hide_input_in_errors=True)

    bootstrap: str = Field(min_length=1, description="bootstrap.servers of the cluster with the topics.")
    checkpoint: str = Field(
        min_length=1,
        description="Directory, or URL for Hadoop, of Spark's checkpoint. Lost, it is made anew from the topics.",
    )
    master: str = Field("local[2]", description="Spark's master; spark-submit's own wins.")
    kafka_config: Path | None = Field(
        None,
        description="Properties file of Kafka's Java client (security.protocol, ssl.*, sasl.*), as for Kafka's tools.",
    )
    kafka: dict[str, SecretStr] = Field(
        default_factory=dict, description="The same as JSON, for the environment; it wins over the file."
    )
    cluster: str | None = Field(
        None, description="Cluster of snapshots that don't name theirs; default: its id."
    )
    snapshots_topic: Topics = Field(
        ("__quotahost_snapshots",), description="Topics of snapshots, comma-separated.", min_length=1
    )
    cluster_volumes_topic: str = Field("__quotahost_cluster_volumes", description="Topic to publish to.")
    refused_topic: str = Field("__quotahost_refused", description="Dead-letter topic of refused records.")
    tick_topic: str = Field(
        "__quotahost_ticks", description="Topic by which time passes when nothing else comes."
    )
    usage_topic: str = Field("__quotahost_usage", description="Topic of the brokers' usage by client.")
    shares_topic: str = Field("__quotahost_shares", description="Topic of the shares of cluster quotas.")
    interval: Duration = Field(timedelta(milliseconds=50), description="Least time between two batches.")
    tick: Duration = Field(
        timedelta(seconds=5), description="How often to publish although nothing comes; each costs a batch."
    )
    validity: Duration = Field(timedelta(minutes=1), description="How old a broker's newest snapshot may be.")
    expiry: Duration = Field(timedelta(days=1), description="How long a silent broker is listed as stale.")
    fill_window: Duration = Field(
        timedelta(minutes=1), description="How far a fill rate looks back, at least; twice as far at most."
    )
    batch: int = Field(
        500_000, ge=1, description="Most records in one batch; a backlog is read in such parts."
    )
    history: str | None = Field(None, description="Directory for every reading as Parquet; off without.")
    metrics_port: int | None = Field(None, ge=1, le=65535, description="Port for Prometheus; off without.")
    metrics_address: str = Field("127.0.0.1", description="Address that it listens on.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.validity <= self.tick:
            raise ValueError(f"validity ({self.validity}) must be longer than tick ({self.tick})")
        return self

    def client(self) -> dict[str, str]:
        """Kafka's Java client configuration, by file, environment and ``bootstrap.servers``; it holds secrets."""
        told: dict[str, str] = {}
        if self.kafka_config is not None:
            with self.kafka_config.open("rb") as file:
                told = dict(javaproperties.load(file))
        own = {name: value.get_secret_value() for name, value in self.kafka.items()}
        return {"client.id": CLIENT_ID} | told | own | {"bootstrap.servers": self.bootstrap}


def options(**given: Any) -> Options:
    """The options given, None meaning not given, and the environment's.

    Raises:
        OptionsError: one is missing, wrong or unknown, or the file can't be read. Values are not repeated: some of
            them are secrets.
    """
    try:
        made = Options(**{name: value for name, value in given.items() if value is not None})
        made.client()
    except ValidationError as error:
        raise OptionsError("; ".join(map(_told, error.errors(include_input=False)))) from None
    except (OSError, ValueError) as error:
        raise OptionsError(f"--kafka-config can't be read: {error}") from None
    return made


def _told(details: Any) -> str:
    name = str(details["loc"][0]) if details["loc"] else ""
    option = f"--{name.replace('_', '-')} (or {_ENV}{name.upper()}): " if name else ""
    return f"{option}{details['msg'].removeprefix('Value error, ')}"
