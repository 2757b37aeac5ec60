"""A token endpoint of OpenID Connect with the standard library and openssl, for brokers and clients of OAUTHBEARER.

It gives a signed token to a client with a known id and secret, and shows the key with which brokers check it (JWKS).
"""

import base64
import json
import subprocess
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self

AUDIENCE: Final = "kafka"
_KEY: Final = "tests"
#: Lets Kafka's clients ask these addresses; by default 4.0 and newer ask none.
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class TokenEndpoint:
    """Runs for the time of a ``with`` block."""

    def __init__(self, directory: Path, clients: Mapping[str, str], lifetime: int = 300) -> None:
        """Makes a key in the directory. ``clients`` are secrets by id; ``lifetime`` of a token in s."""
        self._key, self._clients, self._lifetime = directory / "tokens.pem", clients, lifetime
        _openssl("genrsa", "-out", str(self._key), "2048")
        modulus = _openssl("rsa", "-in", str(self._key), "-noout", "-modulus").decode().strip().partition("=")[2]
        public = {"kty": "RSA", "alg": "RS256", "kid": _KEY, "e": "AQAB", "n": _text(bytes.fromhex(modulus))}
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._say(200, {"keys": [public]})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                scheme, _, login = self.headers.get("authorization", "").partition(" ")
                client, _, secret = base64.b64decode(login).decode().partition(":")
                if scheme == "Basic" and endpoint._clients.get(client) == secret:
                    self._say(200, endpoint._answer(client))
                else:
                    self._say(401, {"error": "invalid_client"})

            def _say(self, code: int, answer: Mapping[str, Any]) -> None:
                self.send_response(code)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/token"
        self.keys = f"http://127.0.0.1:{self._server.server_port}/keys"

    def _answer(self, client: str) -> Mapping[str, Any]:
        now = int(time.time())
        claims = {"sub": client, "aud": AUDIENCE, "iat": now, "exp": now + self._lifetime}
        header = {"alg": "RS256", "kid": _KEY, "typ": "JWT"}
        signed = ".".join(_text(json.dumps(part).encode()) for part in (header, claims))
        signature = _openssl("dgst", "-sha256", "-sign", str(self._key), given=signed.encode())
        token = f"{signed}.{_text(signature)}"
        return {"access_token": token, "token_type": "Bearer", "expires_in": self._lifetime}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _text(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")


def _openssl(*args: str, given: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *args], input=given, check=True, capture_output=True, timeout=60).stdout
