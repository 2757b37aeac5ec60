"""HTTP requests whose whole duration and answer are bounded, and that another thread can end."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from quotahost.errors import QuotahostError

MAX_BYTES: Final = 16 * 1024 * 1024


class Aborted(QuotahostError):
    """The time was over, or :meth:`Exchange.abort` was called."""


class TooLarge(QuotahostError, OSError):
    """The answer is larger than is read."""


@dataclass(frozen=True, slots=True)
class Response:
    """An answer in full."""

    status: int
    reason: str
    location: str
    body: bytes


class _Connection(http.client.HTTPConnection):
    """Opens its socket by way of the exchange, so that this can end it."""

    def __init__(self, exchange: Exchange, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self._exchange, self._tls = exchange, tls

    def connect(self) -> None:
        self.sock = self._exchange.open(self.host, self.port)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)


class Exchange:
    """One request at a time. A socket's timeout bounds each wait alone, so a timer bounds them all."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._lock = threading.Lock()
        self._ended = self._for_good = False
        self._handle: socket.socket | None = None
        self._timeout = 0.0

    @contextmanager
    def limited(self, timeout: float) -> Iterator[None]:
        """All inside must be done within so many seconds.

        Raises:
            Aborted: it wasn't, or was aborted; whatever else it ended in.
        """
        self._timeout = timeout
        with self._lock:
            self._ended = self._for_good
        timer = threading.Timer(timeout, self.abort)
        timer.daemon = True
        timer.start()
        try:
            yield
        except Exception:
            if not self._ended:
                raise
        finally:
            timer.cancel()
            timer.join()
            self._forget()
        if self._ended:
            raise Aborted

    def abort(self, for_good: bool = False) -> None:
        """End what is under way, and if ``for_good`` all that comes."""
        with self._lock:
            self._ended, self._for_good = True, self._for_good or for_good
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def open(self, host: str, port: int) -> socket.socket:
        """A connected socket that :meth:`abort` ends."""
        connected = socket.create_connection((host, port), self._timeout)
        self._forget()
        with self._lock:
            if self._ended:
                connected.close()
                raise Aborted
            # A duplicate, since TLS takes the socket itself away; shutting down either ends both.
            self._handle = connected.dup()
        return connected

    def post(self, url: str, body: str, headers: Mapping[str, str]) -> Response:
        """POST a form.

        Raises:
            OSError, http.client.HTTPException, ValueError: no answer, or none of HTTP's.
            TooLarge: it is larger than 16 MiB.
        """
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        connection = _Connection(self, parts.hostname or "", port, self._tls if secure else None)
        form = {"Content-Type": "application/x-www-form-urlencoded", "Connection": "close"}
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection.request("POST", target, body, {**form, **headers})
            with connection.getresponse() as answer:
                location = answer.headers.get("Location", "")
                return Response(answer.status, answer.reason, location, _body(answer))
        finally:
            connection.close()

    def _forget(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None


def _body(answer: http.client.HTTPResponse) -> bytes:
    body = answer.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise TooLarge(f"the answer is larger than {MAX_BYTES // 1024**2} MiB")
    return body
