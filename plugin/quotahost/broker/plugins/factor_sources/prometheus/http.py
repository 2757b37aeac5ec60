"""HTTP requests whose whole duration and size are bounded, and which another thread can end.

The timeout of a socket, and so that of most HTTP libraries, bounds each single wait: a server that sends a byte now
and then holds its client for ever. Here a timer bounds the whole, redirects included, by shutting the socket down.
``promql`` asks its queries through this module.
"""

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
    """The time was over, or :meth:`HttpClient.abort` was called."""


class TooLarge(QuotahostError, OSError):
    """The answer is larger than 16 MiB."""


@dataclass(frozen=True, slots=True)
class Response:
    """A complete answer."""

    status: int
    reason: str
    location: str
    body: bytes


class _Connection(http.client.HTTPConnection):
    """Lets the client open the socket, so that the client can shut it down."""

    def __init__(self, client: HttpClient, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self._client, self._tls = client, tls

    def connect(self) -> None:
        self.sock = self._client.open(self.host, self.port)
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(self.sock, server_hostname=self.host)


class HttpClient:
    """Makes one request at a time."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        """``tls`` holds the certificates to trust for https."""
        self._tls = tls
        self._lock = threading.Lock()
        self._aborted = self._for_good = False
        self._handle: socket.socket | None = None
        self._timeout = 0.0

    @contextmanager
    def limited(self, timeout: float) -> Iterator[None]:
        """Abort what is done inside unless it ends within ``timeout`` seconds.

        Raises:
            Aborted: it was aborted, whatever exception it ended with.
        """
        self._timeout = timeout
        with self._lock:
            # An abort for good that came between two queries still holds.
            self._aborted = self._for_good
        timer = threading.Timer(timeout, self.abort)
        timer.daemon = True
        timer.start()
        try:
            yield
        # A socket that is shut down ends in one of many exceptions, of TLS, of HTTP or its own. Aborted replaces them.
        except Exception:
            if not self._aborted:
                raise
        finally:
            # join() waits for an abort that has begun: it would otherwise end the next query.
            timer.cancel()
            timer.join()
            self._forget()
        if self._aborted:
            raise Aborted

    def abort(self, for_good: bool = False) -> None:
        """End the request under way, and if ``for_good`` all later ones. Any thread may call."""
        with self._lock:
            self._aborted, self._for_good = True, self._for_good or for_good
            if self._handle is not None:
                with suppress(OSError):
                    self._handle.shutdown(socket.SHUT_RDWR)

    def open(self, host: str, port: int) -> socket.socket:
        """A connected socket that :meth:`abort` shuts down."""
        # There is no socket to shut down before it is connected, so the timeout bounds each try to connect.
        connected = socket.create_connection((host, port), self._timeout)
        # Each redirect opens a socket of its own.
        self._forget()
        with self._lock:
            if self._aborted:
                connected.close()
                raise Aborted
            # A duplicate, since TLS takes the socket itself away; shutting down either ends both.
            self._handle = connected.dup()
        return connected

    def post(self, url: str, body: str, headers: Mapping[str, str]) -> Response:
        """POST a form.

        Raises:
            OSError, http.client.HTTPException, ValueError: there is no answer, or it is not HTTP.
            TooLarge: the answer is larger than 16 MiB.
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
                # Bounded here, because the answer may be endless and Content-Length may be absent or wrong.
                content = answer.read(MAX_BYTES + 1)
                if len(content) > MAX_BYTES:
                    raise TooLarge(f"the answer is larger than {MAX_BYTES // 1024**2} MiB")
                return Response(answer.status, answer.reason, answer.headers.get("Location", ""), content)
        finally:
            connection.close()

    def _forget(self) -> None:
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None
