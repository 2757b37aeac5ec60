"""The factor source ``prometheus``: asks a Prometheus server for the volumes of the cluster.

Proposal 035 names other suppliers of volumes than Kafka's own; this is one. Broker properties, all under
``client.quota.callback.``::

    factor.source=prometheus
    plugin.prometheus.url=http://prometheus:9090
    plugin.prometheus.capacity=node_filesystem_size_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.available=node_filesystem_avail_bytes{job="kafka",mountpoint=~"/data.*"}
    plugin.prometheus.expected=kafka-1:9100,kafka-2:9100,kafka-3:9100

Without ``expected`` a broker whose exporter is gone looks like one that was taken out of the cluster: Prometheus
gives no series for it, and nothing is unknown. If Prometheus stopped scraping without noticing, it answers with
samples of up to five minutes ago (its ``--query.lookback-delta``).

A thread asks two queries every ``interval`` and pairs their series by broker and volume. Whatever doesn't fit together
may be a full disk; so it is unknown, with a sentence, and ``fallback.action`` holds for it. ``read`` answers from
memory: the last volumes, which are unknown once they are older than ``validity``.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from quotahost.api import Context
from quotahost.background import Periodic
from quotahost.broker.plugins.factor_sources.promql import Answer, Credentials, PromQL, QueryFailed, shorten
from quotahost.model import ClusterVolumes, Volume
from quotahost.settings.types import Text, distinct, split
from quotahost.units import Duration

MAX_SENTENCES: Final = 20
_CLOSE_WITHIN: Final = 2.0  # seconds; only a server that can't be connected holds the thread for longer
_MAX_BYTES: Final = 2.0**63  # Kafka reports the sizes of volumes as Java's long
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_HEADER: Final = re.compile(r"[!-~]+")  # characters that can't break out of an HTTP header

Place = tuple[str, str]
"""A broker and a volume, by the values of their labels."""


def _parse_url(value: object) -> str:
    text = str(value).strip().rstrip("/")
    if "@" in text:
        return text  # refused by the model, whose errors don't show the value: it may contain a password
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HEADER.fullmatch(text):
        raise ValueError("is no base URL; write one such as http://prometheus:9090")
    if parts.query or parts.fragment:
        raise ValueError("must end before the first ? or #; write a base URL such as http://prometheus:9090")
    if parts.port == 0:  # urlsplit itself refuses any other text that is no port
        raise ValueError("has port 0; write the port that Prometheus listens on")
    return text


def _parse_label(value: object) -> str:
    text = str(value).strip()
    if not _LABEL.fullmatch(text):
        raise ValueError("is no label name; write letters, digits and _, such as instance")
    return text


def _parse_brokers(value: object) -> tuple[str, ...]:
    return distinct([part for part in split(value, ",") if part])


def _check_header(value: Any) -> Any:
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if not _HEADER.fullmatch(text):
        raise ValueError("must be visible ASCII characters, without blanks")
    return value


_Url = Annotated[str, BeforeValidator(_parse_url)]
_Label = Annotated[str, BeforeValidator(_parse_label)]
_Brokers = Annotated[tuple[str, ...], BeforeValidator(_parse_brokers)]
_Token = Annotated[SecretStr, BeforeValidator(_check_header)]


class PrometheusSettings(BaseModel):
    """The properties under ``plugin.prometheus.``."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    url: _Url = Field(description="base URL of the server, such as http://prometheus:9090")
    capacity: Text = Field(description="PromQL for the capacity of each volume in bytes")
    available: Text | None = Field(None, description="PromQL for the bytes available; or set consumed")
    consumed: Text | None = Field(None, description="PromQL for the bytes consumed; or set available")
    broker_label: _Label = Field("instance", description="label whose value names the broker")
    volume_label: _Label = Field("mountpoint", description="label whose value names the volume of a broker")
    expected: _Brokers = Field((), description="brokers, by that label, without which the state is unknown")
    interval: Duration = Field(
        timedelta(seconds=10), ge=timedelta(milliseconds=100), le=timedelta(hours=1), description="how often to ask"
    )
    timeout: Duration = Field(
        timedelta(seconds=5), le=timedelta(minutes=1), description="how long one query may take in all"
    )
    bearer_token: _Token | None = Field(None, description="token to send")
    username: str | None = Field(None, min_length=1, pattern="^[^:]+$", description="user name to send")
    password: SecretStr | None = Field(None, description="password to send")
    ca_location: Text | None = Field(None, description="file with the certificates to trust, PEM")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Check the properties together. Errors here show no values, so a URL that may contain a password ends here."""
        if "@" in self.url:
            raise ValueError("url must not hold a user name, password or @; set username and password instead")
        if (self.available is None) is (self.consumed is None):
            raise ValueError("set exactly one of available and consumed")
        if (self.username is None) is not (self.password is None):
            raise ValueError("set both username and password, or neither")
        if self.bearer_token is not None and self.username is not None:
            raise ValueError("set bearer-token, or username and password, not both")
        if self.ca_location is not None and not self.url.startswith("https:"):
            raise ValueError("ca-location is for https; the url is not")
        return self


class Volumes:
    """Pairs the series of two queries by broker and volume."""

    def __init__(self, broker_label: str, volume_label: str, expected: Iterable[str] = ()) -> None:
        """Labels that name broker and volume; ``expected`` are brokers without which the state is unknown."""
        self._labels, self._expected = (broker_label, volume_label), tuple(expected)

    def of(self, capacity: Answer, used: Answer, *, available: bool) -> ClusterVolumes:
        """The volumes that both queries describe, and a sentence for each problem.

        Args:
            capacity: the size of each volume in bytes.
            used: bytes available on each volume, or bytes consumed.
            available: whether ``used`` are the bytes available.
        """
        word = "available" if available else "consumed"
        problems: list[str] = []
        sizes = self._by_place("capacity", capacity, problems)
        others = self._by_place(word, used, problems)
        problems += [f"{_named(place)} has capacity, but no {word}" for place in sizes if place not in others]
        problems += [f"{_named(place)} has {word}, but no capacity" for place in others if place not in sizes]
        volumes = []
        for place, size in sizes.items():
            other = others.get(place)
            if size is not None and other is not None:
                volumes += _volume(place, size, other, available, problems)
        present = {volume.broker for volume in volumes}
        problems += [f"expected broker {b!r} has no volume" for b in self._expected if b not in present]
        if not volumes and not problems:
            problems = ["the queries find no series"]
        return ClusterVolumes(tuple(volumes), _bounded(problems))

    def _by_place(self, query: str, answer: Answer, problems: list[str]) -> dict[Place, int | None]:
        """Bytes by place, None where they are unknown; each such place gets a sentence in ``problems``."""
        # A warning may mean that a part of the series is missing, and with it a full disk.
        problems += [f"the {query} query came with a warning: {warning}" for warning in answer.warnings]
        found: dict[Place, int | None] = {}
        count: Counter[Place] = Counter()
        for series in answer.series:
            broker, volume = (series.labels.get(label, "") for label in self._labels)
            if not broker or not volume:
                lacking = self._labels[1 if broker else 0]
                problems.append(f"a series of the {query} query has no label {lacking!r}")
                continue
            count[broker, volume] += 1
            sound = 0 <= series.value < _MAX_BYTES  # False for NaN
            found[broker, volume] = int(series.value) if sound else None
            if not sound:
                problems.append(f"{_named((broker, volume))} has {series.value:g} as {query}")
        # Nothing says which of several series is right, so none is taken.
        for place, times in count.items():
            if times > 1:
                found[place] = None
                problems.append(f"{_named(place)} is {times} times in the {query} query")
        return found


def _volume(place: Place, size: int, other: int, available: bool, problems: list[str]) -> list[Volume]:
    if size == 0:
        problems.append(f"{_named(place)} has a capacity of 0")
        return []
    # Consumed bytes may exceed the capacity, as file systems keep blocks for root; available ones can't.
    if available and other > size:
        problems.append(f"{_named(place)} has {other} bytes available of {size}")
        return []
    return [Volume(*place, size, size - other if available else other)]


def _named(place: Place) -> str:
    # Labels are anybody's text of any length, and the sentence goes to the log.
    broker, volume = map(shorten, place)
    return f"broker {broker!r}, volume {volume!r}"


def _bounded(sentences: list[str]) -> tuple[str, ...]:
    """The first 20 sentences; if there are more, the last one says how many."""
    distinct = list(dict.fromkeys(sentences))
    if len(distinct) > MAX_SENTENCES:
        distinct[MAX_SENTENCES - 1 :] = [f"and {len(distinct) - MAX_SENTENCES + 1} more"]
    return tuple(distinct)


class Prometheus:
    """Asks every ``interval``, on a thread of its own; ``read`` answers from memory.

    The thread starts with the first ``read``, so that a source which is built and then not used asks nobody. A live
    change of its properties builds it anew.
    """

    Section = PrometheusSettings

    def __init__(self, context: Context[PrometheusSettings], clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` in seconds, monotonic.

        Raises:
            ValueError: ``interval`` is not below ``validity``, or ``ca-location`` can't be read.
        """
        own = context.section
        # Otherwise every answer would be too old before the next one came.
        if own.interval >= context.settings.validity:
            raise ValueError(f"plugin.{context.name}.interval must be below validity; set it lower")
        self._context, self._own, self._clock = context, own, clock
        self._client = _client(own)
        self._volumes = Volumes(own.broker_label, own.volume_label, own.expected)
        self._host = urlsplit(own.url).hostname
        self._last: tuple[float, ClusterVolumes] | None = None  # replaced as one, so it needs no lock
        self._reason, self._logged = "", ""
        self._pause = 0.0
        self._loop: Periodic | None = None
        self._closed = False

    def read(self) -> ClusterVolumes | None:
        """The last volumes, None before the first answer. Once they are older than ``validity`` they are unknown."""
        last = self._last
        if self._loop is None:
            # No thread of the context: this one asks a server and never the broker, so it never calls into Java.
            self._loop = Periodic("prometheus", self._work, lambda: self._pause)
        if last is None:
            return None
        asked_at, volumes = last
        validity = self._context.settings.validity.total_seconds()
        if self._clock() - asked_at <= validity:
            return volumes
        # The sentence names no age: the cause of the factor would be a new one every second.
        long = f"has not answered for more than validity ({validity:g} s)"
        silent = f"prometheus {self._host} {long}: {self._reason or 'no reason yet'}"
        return ClusterVolumes(volumes.volumes, (silent,))

    def close(self) -> None:
        """End the thread; a query under way is aborted."""
        # Set first, so that the query which abort() ends is not logged as a fault.
        self._closed = True
        self._client.abort()
        if self._loop is not None:
            self._loop.close(_CLOSE_WITHIN)

    def _work(self) -> None:
        begin, interval = time.monotonic(), self._own.interval.total_seconds()
        self._ask()
        # A server that takes longer than the interval still gets some rest.
        self._pause = max(interval - (time.monotonic() - begin), interval / 10)

    def _ask(self) -> None:
        own = self._own
        asked_at = self._clock()  # before the question, so that the answer is no younger than it seems
        try:
            capacity = self._client.query(own.capacity)
            used = self._client.query(own.available or own.consumed or "")
            volumes = self._volumes.of(capacity, used, available=own.available is not None)
        except QueryFailed as error:
            self._failed(str(error))
        except Exception as error:  # the thread must outlive any answer; the error's text may contain anything
            self._failed(f"{type(error).__name__} while reading the answer")
        else:
            self._last = (asked_at, volumes)
            self._log("unknown" if volumes.unknown else "", "; ".join(volumes.unknown))

    def _failed(self, reason: str) -> None:
        self._reason = reason
        self._log("failed", reason)

    def _log(self, fault: str, reason: str) -> None:
        """Log a kind of fault once, until there is another kind or none."""
        # By the kind of fault, as its words may change with each answer.
        if fault == self._logged or self._closed:
            return
        self._logged, log = fault, self._context.log
        if fault == "failed":
            log.error("prometheus %s gives no answer; the last holds for validity: %s", self._host, reason)
        elif fault:
            log.error("prometheus %s does not know all volumes: %s", self._host, reason)
        else:
            log.warning("prometheus %s knows all volumes again", self._host)


def _client(own: PrometheusSettings) -> PromQL:
    token = own.bearer_token.get_secret_value() if own.bearer_token else ""
    password = own.password.get_secret_value() if own.password else ""
    credentials = Credentials(token, own.username or "", password)
    try:
        return PromQL(own.url, own.timeout.total_seconds(), credentials, own.ca_location)
    except OSError as error:
        raise ValueError(f"ca-location can't be read: {error.strerror or type(error).__name__}") from None
