"""``Options`` declares the pipeline's options once, for the command line, for spark-submit and for the environment.

An option comes from the command line or from ``QUOTAHOST_PIPELINE_*`` in the environment; secrets come from a file or
from the environment only. The command ``quotahost pipeline`` makes its own options from this model, and its help must
work without the extra ``spark``, so this module doesn't import Spark. Read :mod:`quotahost.pipeline.main` next.
"""

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Final, Self

import javaproperties
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Json, SecretStr, ValidationError, model_validator

from quotahost.base.errors import Unusable
from quotahost.base.text import printable
from quotahost.records.topics import PREFIX, SNAPSHOTS, Topic
from quotahost.settings.declaration import reason
from quotahost.settings.sections import revealed
from quotahost.settings.types import TopicPrefix
from quotahost.units import Duration

#: If clients don't authenticate, the brokers' fence recognizes the pipeline by this client-id. If clients authenticate,
#: the pipeline's principal must be exempt from the fence.
CLIENT_ID: Final = "quotahost-pipeline"
_ENV: Final = "QUOTAHOST_PIPELINE_"
_TOPIC_OF: Final = re.compile(r"[A-Za-z0-9._-]{1,249}(=[A-Za-z0-9._-]{1,249})?")
_ONE_EACH: Final = (
    "name each topic once, with a cluster that no other topic has, as in a.snapshots=ID,b.snapshots=ID; the topic "
    "of the bootstrap's cluster may omit it"
)


class OptionsError(Unusable, ValueError):
    """One or more options are wrong; the message names each, and the remedy."""


def _clusters(value: str) -> dict[str, str]:
    """Return topics with their clusters ("" for the bootstrap's) from ``topic`` or ``topic=cluster`` with commas.

    Raises ValueError if an item hasn't that form, or if two topics have the same cluster.
    """
    given = [topic for each in value.split(",") if (topic := each.strip())]
    for topic in given:
        if not _TOPIC_OF.fullmatch(topic):
            raise ValueError(f"{topic!r} is neither TOPIC nor TOPIC=CLUSTER, where CLUSTER is a cluster's id")
    found = {name: cluster for name, _, cluster in (topic.partition("=") for topic in given)}
    # A client that may write to a topic may speak for the topic's cluster, so each cluster has a topic of its own.
    if not 0 < len(given) == len(found) == len(set(found.values())):
        raise ValueError(_ONE_EACH)
    return found


class Options(BaseModel):
    """A field ``x_y`` is the option ``--x-y``, except ``kafka``, and the variable ``QUOTAHOST_PIPELINE_X_Y``."""

    # pydantic would repeat a wrong value in its message, and some values are secrets.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    bootstrap: str = Field(min_length=1, description="bootstrap.servers of the cluster with the topics.")
    checkpoint: str = Field(
        min_length=1,
        description="Directory, or URL for Hadoop, of Spark's checkpoint. A lost one is rebuilt from the topics.",
    )
    master: str = Field("local[2]", min_length=1, description="Spark's master; spark-submit's own wins.")
    kafka_config: Path | None = Field(
        None, description="Properties file of Kafka's Java client: security.protocol, ssl.*, sasl.*."
    )
    kafka: Json[dict[str, SecretStr]] = Field(
        default_factory=dict, description="The same as a JSON object, for the environment; it wins over the file."
    )
    topics_prefix: TopicPrefix = Field(
        PREFIX, description="Prefix of the topics' names; the same as the brokers' topics.prefix."
    )
    snapshots_topic: Annotated[dict[str, str], BeforeValidator(_clusters)] | None = Field(
        None, description="Other topics of snapshots: TOPIC, or TOPIC=ID of a mirrored cluster, with commas."
    )
    interval: Duration = Field(timedelta(milliseconds=150), description="Shortest time between two batches.")
    tick: Duration = Field(timedelta(seconds=5), description="How often to publish when no snapshot comes.")
    validity: Duration = Field(timedelta(minutes=1), description="A broker is stale if its latest snapshot is older.")
    expiry: Duration = Field(
        timedelta(days=1), description="How long a stale broker is listed; its last volumes stay in the record."
    )
    fill_window: Duration = Field(
        timedelta(minutes=1), description="A fill rate looks back at least this long, at most twice as long."
    )
    batch: int = Field(500_000, ge=1, description="Most records in a batch (history: ten times as many).")
    history: str | None = Field(
        None, min_length=1, description="Directory for every reading as Parquet; default: no history."
    )
    metrics_port: int | None = Field(None, ge=1, le=65535, description="Port for Prometheus; default: none.")
    metrics_address: str = Field("127.0.0.1", min_length=1, description="Address that the port listens on.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        validity = f"--validity={as_text(self.validity)}"
        # Otherwise all brokers would become stale between two batches.
        if self.validity <= (longer := max(self.tick, self.interval)):
            raise ValueError(f"{validity} must be longer than --tick and --interval ({as_text(longer)})")
        # Otherwise the pipeline would forget a broker while the broker reports.
        if self.expiry < self.validity:
            raise ValueError(f"--expiry={as_text(self.expiry)} must not be shorter than {validity}")
        return self

    def named(self, topic: Topic) -> str:
        """Return the name of a topic with this prefix; for the snapshots see :meth:`clusters`."""
        return topic.named(self.topics_prefix)

    def clusters(self, own: str) -> dict[str, str]:
        """Return the topics of snapshots with their clusters; ``own`` is the id of the bootstrap's cluster.

        Raises OptionsError if two topics have the same cluster.
        """
        topics = self.snapshots_topic or {self.named(SNAPSHOTS): ""}
        found = {topic: cluster or own for topic, cluster in topics.items()}
        if len(set(found.values())) < len(found):
            raise OptionsError(f"{option('snapshots_topic')}: {_ONE_EACH}")
        return found

    def client(self) -> dict[str, str]:
        """Return Kafka's configuration in the Java client's names, with secrets; the environment wins over the file.

        Raises OSError if the file of ``kafka_config`` can't be read; ValueError if the file is no properties file.
        """
        config = {"client.id": CLIENT_ID}
        if self.kafka_config is not None:
            with self.kafka_config.open("rb") as file:
                config |= javaproperties.load(file)
        return config | revealed(self.kafka) | {"bootstrap.servers": self.bootstrap}


def options(**given: Any) -> Options:
    """Return the options from ``given``, where None means not given, and from the environment.

    Raises OptionsError if an option is missing, wrong or unknown, or the file can't be read.
    """
    variables = {name: f"{_ENV}{name.upper()}" for name in Options.model_fields}
    environment = {name: os.environ[variable] for name, variable in variables.items() if variable in os.environ}
    try:
        made = Options(**environment | {name: value for name, value in given.items() if value is not None})
        # The file is read now, so that an unreadable file is an error before Spark starts.
        made.client()
    except ValidationError as error:
        # The cause is left out, because pydantic's error contains the values, and a traceback would show them.
        raise OptionsError("; ".join(map(_problem, error.errors()))) from None
    except (OSError, ValueError) as error:
        # The text of javaproperties is left out, because it may repeat the beginning of a secret.
        problem = error.strerror if isinstance(error, OSError) else "it is not a properties file"
        raise OptionsError(f"--kafka-config {made.kafka_config} can't be read: {problem}") from None
    return made


def option(name: str) -> str:
    """Return the option of a field: ``--fill-window`` for ``fill_window``."""
    return f"--{name.replace('_', '-')}"


def as_text(value: object) -> str:
    """Return a value as an operator writes it; :class:`Options` reads it back."""
    if isinstance(value, dict):
        return ",".join(f"{topic}={cluster}".removesuffix("=") for topic, cluster in value.items())
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.15g}s"
    return str(value)


def _problem(details: Any) -> str:
    name = str(details["loc"][0]) if details["loc"] else ""
    where = f"{option(name)} (or {_ENV}{name.upper()})" if name else ""
    if details["type"] == "missing":
        return f"{where} is missing; give it"
    # An error of all options together shows no value, and an error of ``kafka`` shows no secrets.
    value = "" if name in ("", "kafka") else f"={printable(str(details['input']))}"
    return f"{where}{value}: {reason(details)}".removeprefix(": ")
