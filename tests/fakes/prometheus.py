"""An HTTP server that answers Prometheus queries with the answers that a test has set."""

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

Vector = Mapping[tuple[str, str], float | str]
"""Values by instance and mountpoint."""


@dataclass
class Request:
    """One request that the server received."""

    path: str
    query: str
    authorization: str | None


@dataclass
class Reply:
    """One answer of the server."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


def success(vector: Vector, **more: Any) -> Reply:
    result = [
        {"metric": {"instance": broker, "mountpoint": volume}, "value": [0, str(value)]}
        for (broker, volume), value in vector.items()
    ]
    return of_json({"status": "success", "data": {"resultType": "vector", "result": result}} | more)


def of_json(content: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(content).encode())


Answers = Callable[[Request, BaseHTTPRequestHandler], Reply | None]


class FakePrometheus:
    """Answers with ``replies[query]``, or with the result of ``answer`` if it is set; ``asked`` has all requests."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.replies: dict[str, Reply] = {}
        self.answer: Answers | None = None
        self.asked: list[Request] = []
        self.ended = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def serve(self, capacity: Vector, available: Vector, **more: Any) -> None:
        self.replies = {"size": success(capacity, **more), "avail": success(available)}

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _reply(self, asked: Request, handler: BaseHTTPRequestHandler) -> Reply | None:
        self.asked.append(asked)
        if self.answer is not None:
            return self.answer(asked, handler)
        unknown = of_json({"status": "error", "errorType": "bad_data", "error": "unknown query"}, 400)
        return self.replies.get(asked.query, unknown)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                asked = Request(self.path, form["query"][0], self.headers.get("Authorization"))
                reply = fake._reply(asked, self)
                if reply is None:  # ``answer`` has written the response itself
                    return
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
