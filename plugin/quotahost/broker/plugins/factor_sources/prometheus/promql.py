"""PromQL instant queries by Prometheus' HTTP API (``/api/v1/query``), bounded in time and size.

The answer is read by hand and not by a schema, because each way in which a query or its answer can be wrong has a
sentence of its own that says what to change. Credentials go to the configured server only, and into no message.
``source`` asks; ``volumes`` turns two answers into volumes.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http.client import HTTPException
from typing import Any, Final
from urllib.parse import urlencode, urljoin, urlsplit

from quotahost.broker.plugins.factor_sources.prometheus.http import Aborted, HttpClient, Response
from quotahost.errors import QuotahostError
from quotahost.text import redact

MAX_SERIES: Final = 100_000
MAX_REDIRECTS: Final = 5
_MAX_TEXT: Final = 200  # characters that are quoted of a server's own words


class QueryFailed(QuotahostError):
    """The query has no usable answer; the message says why, in one line and without secrets."""


@dataclass(frozen=True, slots=True)
class Series:
    """One element of an instant vector; its value is NaN where the server gave no number."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Answer:
    """An instant vector, and the server's warnings."""

    series: tuple[Series, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Credentials:
    """A bearer token, or a user name and a password; nothing by default."""

    token: str = ""
    username: str = ""
    password: str = ""

    def header(self) -> str:
        """The value of ``Authorization``, "" for none."""
        return f"Bearer {self.token}" if self.token else f"Basic {self._basic()}" if self.username else ""

    def hide(self, text: str) -> str:
        """The text with all credentials replaced by ``***``."""
        return redact(text, [self.token, self.password, self._basic() if self.username else ""])

    def _basic(self) -> str:
        return base64.b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")


class PromQL:
    """Asks one Prometheus server, one query at a time.

    It uses no proxy of the process' environment: the properties alone decide where credentials go.
    """

    def __init__(self, url: str, timeout: float, credentials: Credentials | None = None, ca: str | None = None) -> None:
        """Bound each query, with all its redirects, to ``timeout`` seconds; ``ca`` is a PEM file to trust.

        Raises:
            OSError: the file can't be read, or contains no certificate.
        """
        self._url, self._timeout = url.rstrip("/") + "/api/v1/query", timeout
        self._credentials = credentials or Credentials()
        # Once for all queries: the system's certificates take long to load.
        self._http = HttpClient(ssl.create_default_context(cafile=ca))

    def query(self, expression: str) -> Answer:
        """The answer to an instant query, evaluated at the server's present time.

        Raises:
            QueryFailed: there is no usable answer.
        """
        # The server is given the timeout, too, so that it doesn't go on with a query for which nobody waits.
        body = urlencode({"query": expression, "timeout": f"{self._timeout * 1000:.0f}ms"})
        try:
            with self._http.limited(self._timeout):
                response = self._post(body)
            answer = _answer(response)
        # `from None`, because the text of the first error is not cleaned: a server may repeat the credentials in it.
        except QueryFailed as error:
            raise self._failed(str(error)) from None
        except (Aborted, TimeoutError):
            raise self._failed(f"no whole answer within {self._timeout:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._failed(f"{type(error).__name__}: {error}") from None
        return replace(answer, warnings=tuple(map(self._clean, answer.warnings)))

    def abort(self) -> None:
        """End the query under way, if any, and all later ones. Any thread may call."""
        self._http.abort(for_good=True)

    def _clean(self, text: str) -> str:
        # Secrets are hidden before the text is cut off: half a secret would not be found.
        return shorten(self._credentials.hide(text))

    def _failed(self, text: str) -> QueryFailed:
        return QueryFailed(self._clean(text))

    def _post(self, body: str) -> Response:
        """The first response that is no redirect."""
        url = self._url
        for _ in range(MAX_REDIRECTS + 1):
            response = self._http.post(url, body, self._headers(url))
            if response.status not in (301, 302, 303, 307, 308):
                return response
            url = urljoin(url, response.location)
            if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
                raise QueryFailed("redirected to something else than http")
            if self._url.startswith("https:") and not url.startswith("https:"):
                raise QueryFailed("redirected from https to http")
        raise QueryFailed(f"redirected more than {MAX_REDIRECTS} times")

    def _headers(self, url: str) -> dict[str, str]:
        """The credentials go to the configured scheme, host and port, wherever a redirect leads."""
        header = self._credentials.header()
        return {"Authorization": header} if header and _origin(url) == _origin(self._url) else {}


def shorten(text: str) -> str:
    """One printable line of at most 200 characters."""
    # Cut off first: the text may be as long as a whole answer. A line break in it would fake a line of the log.
    line = "".join(c if c.isprintable() else " " for c in text[: _MAX_TEXT + 1])
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "…"


def _origin(url: str) -> tuple[str, str | None, int]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)


def _answer(response: Response) -> Answer:
    try:
        reply = json.loads(response.body)
    # Brackets that are nested by the thousand end in a RecursionError.
    except (ValueError, RecursionError):
        reply = None
    # The API reports errors as JSON, too, with another HTTP status.
    if isinstance(reply, dict) and reply.get("status") == "error":
        raise QueryFailed(f"the server says {reply.get('errorType')}: {reply.get('error')}")
    if response.status != 200:
        raise QueryFailed(f"HTTP status {response.status} {response.reason}".rstrip())
    if not isinstance(reply, dict) or reply.get("status") != "success":
        raise QueryFailed("the answer is not the JSON of a Prometheus server")
    warnings = reply.get("warnings") or ()
    if not isinstance(warnings, list | tuple):
        raise QueryFailed("the answer has warnings that are no list")
    return Answer(_vector(reply.get("data")), tuple(map(str, warnings)))


def _vector(data: Any) -> tuple[Series, ...]:
    kind = data.get("resultType") if isinstance(data, dict) else None
    if kind != "vector":
        raise QueryFailed(f"the query makes a {kind}; write one that makes an instant vector")
    result = data.get("result")
    if not isinstance(result, list):
        raise QueryFailed("the answer has no list of series")
    if len(result) > MAX_SERIES:
        raise QueryFailed(f"the answer has {len(result):,} series; at most {MAX_SERIES:,} are read")
    return tuple(map(_series, result))


def _series(element: Any) -> Series:
    labels = element.get("metric") if isinstance(element, dict) else None
    if not isinstance(labels, dict) or not all(isinstance(value, str) for value in labels.values()):
        raise QueryFailed("the answer has a series without labels")
    try:
        _, text = element["value"]
        value = float(text)
    except (KeyError, TypeError, ValueError):  # a histogram has no single value
        value = float("nan")
    return Series(labels, value)
