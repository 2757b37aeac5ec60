"""The factor source ``prometheus`` reads the volumes of all brokers from a Prometheus server.

Proposal 035 mentions sources of volumes other than Kafka; this is one of them (docs/disks.md has an example). If
``expected`` is not set, a broker whose exporter is down looks like a broker that was removed from the cluster:
Prometheus returns no series for it, and nothing is unknown. If Prometheus has stopped scraping without noticing, it
answers with samples that are up to five minutes old (its ``--query.lookback-delta``).

1. Every ``interval`` a thread sends two instant queries to Prometheus' HTTP API (``/api/v1/query``, :class:`PromQL`),
   bounded in time and size. A redirect is a failure that names the address to configure, because the credentials must
   go only to the configured server. No message contains credentials.
2. :func:`volumes_of` pairs the series of both queries by broker and volume. Series that don't fit together may hide a
   full disk. So this volume is unknown, a sentence says why, and ``fallback.action`` applies.
3. ``read`` answers from memory with the last volumes; they are unknown when they are too old.
"""

import base64
import json
import logging
import math
import re
import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import timedelta
from functools import partial
from http.client import HTTPConnection, HTTPSConnection
from typing import Annotated, Any, Final, NamedTuple, Self
from urllib.parse import urlencode, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator

from quotahost.api import Context
from quotahost.base.background import Clock, LoggedOnce, Periodic
from quotahost.base.errors import QuotahostError
from quotahost.base.text import bounded, printable, redact
from quotahost.model import ClusterVolumes, Volume
from quotahost.settings import sections
from quotahost.settings.types import Text, distinct, split
from quotahost.units import Duration

MAX_BYTES: Final = 16 * 1024 * 1024  # of an answer
_MAX_SENTENCES: Final = 20
_PART: Final = 64 * 1024  # bytes of an answer per read
_MAX_SIZE: Final = 2.0**63  # bytes of a volume; Kafka reports them as Java's long
_BASE_URL: Final = re.compile(r"https?://(?:(?![?#])[!-~])+")
_HEADER: Final = re.compile(r"[!-~]+")  # characters that can't break out of an HTTP header


# ---- its properties ----


def _base_url(text: str) -> str:
    # The model refuses a URL with an @, because its errors don't show the value, which may contain a password.
    if "@" not in text and not _BASE_URL.fullmatch(text):
        raise ValueError("is no base URL; write one such as http://prometheus:9090, without ? and #")
    return text.rstrip("/")


def _token(secret: SecretStr) -> SecretStr:
    if not _HEADER.fullmatch(secret.get_secret_value()):
        raise ValueError("must be visible ASCII characters, without blanks")
    return secret


_Label = Annotated[Text, Field(pattern="^[a-zA-Z_][a-zA-Z0-9_]*$")]
_Brokers = Annotated[
    tuple[str, ...], BeforeValidator(lambda value: distinct([part for part in split(value, ",") if part]))
]


class PrometheusSettings(sections.Section):
    """The properties under ``plugin.prometheus.``."""

    url: Annotated[Text, AfterValidator(_base_url)] = Field(
        description="base URL of the server, such as http://prometheus:9090"
    )
    capacity: Text = Field(description="PromQL for the capacity of each volume in bytes")
    available: Text | None = Field(None, description="PromQL for the bytes available; or set consumed")
    consumed: Text | None = Field(None, description="PromQL for the bytes consumed; or set available")
    broker_label: _Label = Field("instance", description="label whose value names the broker")
    volume_label: _Label = Field("mountpoint", description="label whose value names the volume of a broker")
    expected: _Brokers = Field((), description="brokers, by that label; if one is missing, the state is unknown")
    interval: Duration = Field(
        timedelta(seconds=10), ge=timedelta(milliseconds=100), le=timedelta(hours=1), description="how often to ask"
    )
    timeout: Duration = Field(timedelta(seconds=5), le=timedelta(minutes=1), description="how long one query may take")
    bearer_token: Annotated[SecretStr, AfterValidator(_token)] | None = Field(None, description="token to send")
    username: str | None = Field(None, pattern="^[^:]+$", description="user name to send")
    password: SecretStr | None = Field(None, description="password to send")
    ca_location: Text | None = Field(None, description="file with the certificates to trust, PEM")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        """Check the properties together. These errors show no values, so a URL that may hold a password fails here."""
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


# ---- asking ----


class Answer(NamedTuple):
    """An instant vector, and the server's warnings."""

    series: tuple[tuple[Mapping[str, str], float], ...]  # labels and value of each
    warnings: tuple[str, ...] = ()


class PromQL:
    """Queries one Prometheus server. It ignores proxies in the process' environment: they would get the credentials."""

    def __init__(self, section: PrometheusSettings) -> None:
        """Send no query yet. Raises ValueError if ``ca-location`` can't be read, or contains no certificate."""
        self._server = urlsplit(section.url + "/api/v1/query")
        self._timeout = section.timeout.total_seconds()
        self._headers = {"Content-Type": "application/x-www-form-urlencoded", "Connection": "close"}
        self._secrets: list[str] = []
        if section.bearer_token:
            self._secrets = [section.bearer_token.get_secret_value()]
            self._headers["Authorization"] = f"Bearer {self._secrets[0]}"
        elif section.password:
            password = section.password.get_secret_value()
            basic = base64.b64encode(f"{section.username}:{password}".encode()).decode()
            self._secrets = [password, basic]
            self._headers["Authorization"] = f"Basic {basic}"
        host, port, timeout = str(self._server.hostname), self._server.port, self._timeout
        self._connect: Callable[[], HTTPConnection] = partial(HTTPConnection, host, port, timeout=timeout)
        if self._server.scheme == "https":
            try:
                # All queries share the context, because loading the system's certificates takes long.
                tls = ssl.create_default_context(cafile=section.ca_location)
            except OSError as error:
                raise ValueError(f"ca-location can't be read: {error.strerror or type(error).__name__}") from None
            self._connect = partial(HTTPSConnection, host, port, timeout=timeout, context=tls)

    def query(self, expression: str) -> Answer:
        """The answer to an instant query, evaluated at the server's present time.

        Raises exceptions that :meth:`reason` puts into words; an exception's own text may repeat credentials.
        """
        # The server gets the timeout, too, so that it stops a query when this thread no longer waits for the answer.
        body = urlencode({"query": expression, "timeout": f"{self._timeout * 1000:.0f}ms"})
        answer = _answer(*self._post(body))
        return Answer(answer.series, tuple(map(self._clean, answer.warnings)))

    def reason(self, error: Exception) -> str:
        """Why there is no usable answer, in one line and without secrets."""
        if isinstance(error, TimeoutError):
            return f"no complete answer within {self._timeout:g} s"
        return self._clean(str(error) if isinstance(error, QuotahostError) else f"{type(error).__name__}: {error}")

    def _clean(self, text: str) -> str:
        # redact() comes before printable() cuts the text, because redact() does not find half a secret.
        return printable(redact(text, self._secrets))

    def _post(self, body: str) -> tuple[int, str, bytearray]:
        """Status, reason and content of the answer. Raises TimeoutError if the whole answer has not arrived in time."""
        until, content = time.monotonic() + self._timeout, bytearray()
        with closing(self._connect()) as connection:
            connection.request("POST", self._server.path, body, self._headers)
            with connection.getresponse() as answer:
                # The loop is bounded, because the answer may be endless and Content-Length may be absent or wrong.
                while len(content) <= MAX_BYTES and (part := answer.read1(_PART)):
                    content += part
                    if time.monotonic() > until:
                        raise TimeoutError
        if len(content) > MAX_BYTES:
            raise QuotahostError(f"the answer is larger than {MAX_BYTES // 1024**2} MiB")
        if answer.status in (301, 302, 303, 307, 308):
            to = answer.headers.get("Location", "nowhere")
            raise QuotahostError(f"the server redirects to {to}; set url to the address it redirects to")
        return answer.status, answer.reason, content


def _answer(status: int, reason: str, content: bytearray) -> Answer:
    try:
        reply = json.loads(content)
        # The API also reports errors as JSON, with another HTTP status.
        if reply["status"] == "error":
            raise QuotahostError(f"the server says {reply['errorType']}: {reply['error']}")
        result, kind = reply["data"]["result"], reply["data"]["resultType"]
        if kind != "vector":
            raise QuotahostError(f"the query returns a {kind}; use a query that returns an instant vector")
        return Answer(tuple(map(_series, result)), tuple(map(str, reply.get("warnings") or ())))
    # Thousands of nested brackets raise a RecursionError.
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        other = "the answer is not the JSON of a Prometheus server"
        raise QuotahostError(other if status == 200 else f"HTTP status {status} {reason}".rstrip()) from None


def _series(element: Any) -> tuple[Mapping[str, str], float]:
    return {name: str(value) for name, value in element["metric"].items()}, float(element["value"][1])


# ---- pairing ----


def volumes_of(capacity: Answer, used: Answer, section: PrometheusSettings) -> ClusterVolumes:
    """The volumes that both queries describe, with their bytes, and a sentence for each problem."""
    labels, word = (section.broker_label, section.volume_label), "available" if section.available else "consumed"
    # After a warning some series may be missing, and with them a full disk.
    problems = [f"the server warns: {warning}" for warning in (*capacity.warnings, *used.warnings)]
    values: dict[tuple[str, str], tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for side, answer in enumerate((capacity, used)):
        for named, value in answer.series:
            values[named.get(labels[0], ""), named.get(labels[1], "")][side].append(value)
    volumes = []
    for place, told in values.items():
        # If there are several series, nothing says which one is right.
        size, other = (side[0] if len(side) == 1 else math.nan for side in told)
        # NaN makes this false. Consumed bytes may exceed the capacity, because file systems reserve blocks for root.
        if all(place) and 1 <= size < _MAX_SIZE and 0 <= other <= (size if section.available else _MAX_SIZE):
            volumes.append(Volume(*place, int(size), int(size) - int(other) if section.available else int(other)))
        else:
            size_told, other_told = (", ".join(f"{value:g}" for value in side[:9]) or "none" for side in told)
            where = ", ".join(f"{label} {printable(name)}" for label, name in zip(labels, place, strict=True))
            problems.append(f"{where}: capacity {size_told}, {word} {other_told}; each must be one number that fits")
    present = {volume.broker for volume in volumes}
    problems += [f"expected broker {broker!r} has no volume" for broker in section.expected if broker not in present]
    if not volumes and not problems:
        problems = ["the queries return no series"]
    return ClusterVolumes(tuple(volumes), tuple(bounded([*dict.fromkeys(problems)], _MAX_SENTENCES, "sentences")))


class Prometheus:
    """Queries the server every ``interval`` on a separate thread; ``read`` answers from memory.

    After a live change of its properties, the host builds a new source.
    """

    Section = PrometheusSettings

    def __init__(self, context: Context[PrometheusSettings], clock: Clock = time.monotonic) -> None:
        """Raises ValueError if ``ca-location`` can't be read."""
        section = context.section
        self._context, self._section, self._clock = context, section, clock
        self._client = PromQL(section)
        self._host = urlsplit(section.url).hostname
        self._last: tuple[float, ClusterVolumes] | None = None  # replaced as a whole, so no lock is needed
        self._reason = "no reason yet"
        self._fault = LoggedOnce(context.log, logging.ERROR)
        # The thread doesn't come from context.start_thread, because it never calls into Java.
        loop = Periodic("prometheus", self._ask, section.interval.total_seconds)
        context.closing.callback(loop.close)  # a thread that waits for the server ends within ``timeout``

    def read(self) -> ClusterVolumes | None:
        """The last volumes, or None before the first answer.

        The volumes are unknown when they are older than ``validity`` and older than two intervals.
        """
        last = self._last
        if last is None:
            return None
        asked_at, volumes = last
        # An answer is one interval old before the next query.
        longest = max(self._context.settings.validity, 2 * self._section.interval).total_seconds()
        if self._clock() - asked_at <= longest:
            return volumes
        silent = f"prometheus {self._host} has not answered for more than {longest:g} s: {self._reason}"
        return ClusterVolumes(volumes.volumes, (silent,))

    def _ask(self) -> None:
        section = self._section
        asked_at = self._clock()  # read before the query, so that the answer is not older than its age says
        try:
            capacity = self._client.query(section.capacity)
            used = self._client.query(section.available or section.consumed or "")
            volumes = volumes_of(capacity, used, section)
        except Exception as error:  # the thread must survive any answer
            self._reason = self._client.reason(error)
            text = "prometheus %s does not answer; its last answer stays in force until it is too old: %s"
            self._fault.report(text, self._host, self._reason)
        else:
            self._last = (asked_at, volumes)
            if volumes.unknown:
                self._fault.report(
                    "prometheus %s does not know all volumes: %s", self._host, "; ".join(volumes.unknown)
                )
            else:
                self._fault.healed("prometheus %s knows all volumes again", self._host)
