"""PromQL instant queries by Prometheus' HTTP API (``/api/v1/query``), bounded in time and size.

A query is one POST. A socket's own timeout bounds each single wait, and a server that sends a byte now and then would
hold its client for ever; so a timer bounds the whole, by shutting the socket down. A redirect is a failure that names
the address to configure: whoever answers must be the configured server, since the credentials go there.

The answer is read by hand and not by a schema, because each way in which a query or its answer can be wrong has a
sentence of its own that says what to change. Credentials go into no message. The source ``prometheus`` asks.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from quotahost.errors import QuotahostError
from quotahost.text import redact

MAX_SERIES: Final = 100_000
MAX_BYTES: Final = 16 * 1024 * 1024
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
        """Bound each query to ``timeout`` seconds in all; ``ca`` is a PEM file to trust.

        Raises:
            OSError: the file can't be read, or contains no certificate.
        """
        self._server, self._timeout = urlsplit(url.rstrip("/") + "/api/v1/query"), timeout
        self._credentials = credentials or Credentials()
        # Once for all queries: the system's certificates take long to load.
        self._tls = ssl.create_default_context(cafile=ca)
        self._socket: socket.socket | None = None
        self._aborted = False

    def query(self, expression: str) -> Answer:
        """The answer to an instant query, evaluated at the server's present time.

        Raises:
            QueryFailed: there is no usable answer.
        """
        # The server is given the timeout, too, so that it doesn't go on with a query for which nobody waits.
        body = urlencode({"query": expression, "timeout": f"{self._timeout * 1000:.0f}ms"})
        try:
            answer = _answer(*self._post(body))
        # `from None`, because the text of the first error is not cleaned: a server may repeat the credentials in it.
        except QueryFailed as error:
            raise self._failed(str(error)) from None
        except TimeoutError:
            raise self._failed(f"no whole answer within {self._timeout:g} s") from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._failed(f"{type(error).__name__}: {error}") from None
        return replace(answer, warnings=tuple(map(self._clean, answer.warnings)))

    def abort(self) -> None:
        """End the query under way, if any, and all later ones. Any thread may call."""
        self._aborted = True
        if (current := self._socket) is not None:
            _shut(current)

    def _clean(self, text: str) -> str:
        # Secrets are hidden before the text is cut off: half a secret would not be found.
        return shorten(self._credentials.hide(text))

    def _failed(self, text: str) -> QueryFailed:
        return QueryFailed(self._clean(text))

    def _connection(self) -> HTTPConnection:
        host = self._server.hostname or ""
        if self._server.scheme == "https":
            return HTTPSConnection(host, self._server.port, timeout=self._timeout, context=self._tls)
        return HTTPConnection(host, self._server.port, timeout=self._timeout)

    def _post(self, body: str) -> tuple[int, str, bytes]:
        """Status, reason and content of the answer.

        Raises:
            TimeoutError: it has not come as a whole in time.
            QueryFailed, OSError, HTTPException, ValueError: there is no answer, or it is of no use.
        """
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Connection": "close"}
        if header := self._credentials.header():
            headers["Authorization"] = header
        late = threading.Event()
        with closing(self._connection()) as connection:
            connection.connect()  # whose waits the socket's timeout bounds, TLS too
            self._socket = connection.sock
            timer = threading.Timer(self._timeout, partial(_shut, connection.sock, late))
            timer.daemon = True
            timer.start()
            try:
                # An abort that came while there was no socket yet.
                if self._aborted:
                    raise QueryFailed("the source is closed")
                connection.request("POST", self._server.path, body, headers)
                with connection.getresponse() as answer:
                    # Bounded, because the answer may be endless and Content-Length may be absent or wrong.
                    content = answer.read(MAX_BYTES + 1)
            # A socket that is shut down ends in one of many exceptions, of TLS, of HTTP or its own.
            except Exception:
                if not late.is_set():
                    raise
            finally:
                timer.cancel()
                self._socket = None
        if late.is_set():
            raise TimeoutError
        if len(content) > MAX_BYTES:
            raise QueryFailed(f"the answer is larger than {MAX_BYTES // 1024**2} MiB")
        if answer.status in (301, 302, 303, 307, 308):
            to = answer.headers.get("Location", "nowhere")
            raise QueryFailed(f"the server redirects to {to}; write as url where it answers itself")
        return answer.status, answer.reason, content


def _shut(connected: socket.socket, late: threading.Event | None = None) -> None:
    """End a socket that another thread reads."""
    if late is not None:
        late.set()
    with suppress(OSError):
        # Past TLS, whose state belongs to the other thread.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)


def shorten(text: str) -> str:
    """One printable line of at most 200 characters."""
    # Cut off first: the text may be as long as a whole answer. A line break in it would fake a line of the log.
    line = "".join(c if c.isprintable() else " " for c in text[: _MAX_TEXT + 1])
    return line if len(line) <= _MAX_TEXT else line[:_MAX_TEXT] + "…"


def _answer(status: int, reason: str, content: bytes) -> Answer:
    try:
        reply = json.loads(content)
    # Brackets that are nested by the thousand end in a RecursionError.
    except (ValueError, RecursionError):
        reply = None
    # The API reports errors as JSON, too, with another HTTP status.
    if isinstance(reply, dict) and reply.get("status") == "error":
        raise QueryFailed(f"the server says {reply.get('errorType')}: {reply.get('error')}")
    if status != 200:
        raise QueryFailed(f"HTTP status {status} {reason}".rstrip())
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
