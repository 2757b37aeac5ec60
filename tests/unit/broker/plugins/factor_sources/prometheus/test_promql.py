"""PromQL queries over HTTP: faults of the server end in one sentence, and credentials go nowhere else."""

import math
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from quotahost.broker.plugins.factor_sources import prometheus as promql
from quotahost.broker.plugins.factor_sources.prometheus import MAX_BYTES, PrometheusSettings, PromQL, QueryFailed
from tests.fakes.prometheus import FakePrometheus, Reply, Request, of_json, success
from tests.skips import COULD_NOT_RUN

SECRET = "s3cret-t0ken"
LONG = 30.0  # seconds; no test waits for it
BASIC = {"username": "Aladdin", "password": "open sesame"}


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    yield fake
    fake.close()


@pytest.fixture
def other() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    yield fake
    fake.close()


def promql_client(url: str, timeout: str = "30s", **more: str) -> PromQL:
    given = {"url": url, "capacity": "size", "available": "avail", "timeout": timeout}
    return PromQL(PrometheusSettings.model_validate(given | more))


def failure(client: PromQL) -> str:
    with pytest.raises(QueryFailed) as error:
        client.query("up")
    return str(error.value)


def test_an_instant_vector_is_read_with_labels_values_and_warnings(server: FakePrometheus) -> None:
    server.replies["up"] = success({("a", "/"): "1.5", ("b", "/"): "NaN"}, warnings=["one shard is down"])
    answer = promql_client(server.url).query("up")
    assert [dict(s.labels) for s in answer.series] == [{"instance": name, "mountpoint": "/"} for name in "ab"]
    assert answer.series[0].value == 1.5
    assert math.isnan(answer.series[1].value)
    assert answer.warnings == ("one shard is down",)
    assert server.asked[0].path == "/api/v1/query"
    result = [{"metric": {}, "histogram": [0, {}]}]
    server.replies["up"] = of_json({"status": "success", "data": {"resultType": "vector", "result": result}})
    assert math.isnan(promql_client(server.url).query("up").series[0].value), "a histogram has no number"


def test_a_base_path_is_kept_and_any_expression_arrives_as_it_is(server: FakePrometheus) -> None:
    expression = 'sum by (a) (x{b=~"/data.+", c="ä&=%"}) > 0'
    server.answer = lambda asked, handler: success({})
    promql_client(server.url + "/prom/").query(expression)
    assert (server.asked[0].path, server.asked[0].query) == ("/prom/api/v1/query", expression)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (of_json({"status": "error", "errorType": "bad_data", "error": "1:3: parse error"}, 400),
         "the server says bad_data: 1:3: parse error"),
        (Reply(401, b"<html>"), "HTTP status 401 Unauthorized"),
        (Reply(503, b""), "HTTP status 503 Service Unavailable"),
        (Reply(200, b"<html>login</html>"), "not the JSON of a Prometheus server"),
        (Reply(200, b"[" * 200_000), "not the JSON of a Prometheus server"),
        (Reply(200, b"9" * 10_000), "not the JSON of a Prometheus server"),
        (Reply(200, b"\xff\xfe\x00"), "not the JSON of a Prometheus server"),
        (Reply(200, b'{"status": "success"', {"Content-Length": "21"}), "not the JSON"),
        (of_json({"status": "success"}), "write one that makes an instant vector"),
        (of_json({"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}), "makes a scalar"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": 1}}), "no list of series"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": [1]}}), "without labels"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": [{"metric": {"a": 1}}]}}),
         "without labels"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": []}, "warnings": 3}),
         "no list of series"),
        (Reply(302, b"", {"Location": "https://other/"}), "redirects to https://other/; write as url where it answers"),
        (Reply(308, b""), "redirects to nowhere"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_failure_with_a_sentence(server: FakePrometheus, reply: Reply, sentence: str) -> None:
    def answer(asked: Request, handler: BaseHTTPRequestHandler) -> Reply:
        handler.close_connection = True
        return reply

    server.answer = answer
    assert sentence in failure(promql_client(server.url))


def test_an_answer_is_read_to_16_mib_and_no_further(server: FakePrometheus) -> None:
    written = 0

    def endless(asked: Request, handler: BaseHTTPRequestHandler) -> None:
        nonlocal written
        handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
        while True:  # until the client hangs up
            written += handler.wfile.write(b" " * 65536)

    def quiet(asked: Request, handler: BaseHTTPRequestHandler) -> None:
        try:
            endless(asked, handler)
        except OSError:
            handler.close_connection = True
            ended.set()

    ended = threading.Event()
    server.answer = quiet
    assert "larger than 16 MiB" in failure(promql_client(server.url))
    assert ended.wait(LONG)
    assert written < 2 * MAX_BYTES


def test_too_many_series_are_a_failure(server: FakePrometheus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promql, "MAX_SERIES", 2)
    server.replies["up"] = success({("a", str(n)): 1 for n in range(2)})
    assert len(promql_client(server.url).query("up").series) == 2
    server.replies["up"] = success({("a", str(n)): 1 for n in range(3)})
    assert "3 series; at most 2" in failure(promql_client(server.url))


def silent(asked: Request, handler: BaseHTTPRequestHandler) -> None:
    handler.connection.recv(1)  # until the client hangs up
    handler.close_connection = True


def dripping(start: bytes) -> object:
    """Sends a byte now and then, so that no single wait of the client is long."""

    def answer(asked: Request, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        try:
            handler.wfile.write(start)
            while not handler.server.ended.wait(0.02):  # type: ignore[attr-defined]
                handler.wfile.write(b"x")
        except OSError:
            pass

    return answer


@pytest.mark.parametrize("start", [None, b"HTTP/1.0 200 ", b"HTTP/1.0 200 OK\r\nA: ", b"HTTP/1.0 200 OK\r\n\r\n"])
def test_a_slow_server_has_the_timeout_in_all(server: FakePrometheus, start: bytes | None) -> None:
    server._server.ended = server.ended  # type: ignore[attr-defined]
    server.answer = silent if start is None else dripping(start)  # type: ignore[assignment]
    assert failure(promql_client(server.url, "300ms")) == "no whole answer within 0.3 s"


@pytest.mark.parametrize(
    ("credentials", "header"),
    [({}, None), ({"bearer_token": SECRET}, f"Bearer {SECRET}"), (BASIC, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")],
)
def test_credentials_are_sent_as_http_says(
    server: FakePrometheus, credentials: dict[str, str], header: str | None
) -> None:
    server.replies["up"] = success({})
    promql_client(server.url, **credentials).query("up")
    assert server.asked[0].authorization == header


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_since_the_credentials_are_the_configured_servers(
    server: FakePrometheus, other: FakePrometheus, status: int
) -> None:
    server.replies["up"] = Reply(status, b"", {"Location": other.url})
    assert f"redirects to {other.url}" in failure(promql_client(server.url, bearer_token=SECRET))
    assert not other.asked


@pytest.mark.parametrize("padding", [0, 190])
@pytest.mark.parametrize(
    ("credentials", "secrets"),
    [({"bearer_token": SECRET}, [SECRET]), (BASIC, ["open sesame", "QWxhZGRpbjpvcGVuIHNlc2FtZQ=="])],
)
def test_credentials_that_a_server_repeats_are_hidden(
    server: FakePrometheus, credentials: dict[str, str], secrets: list[str], padding: int
) -> None:
    echo = "." * padding + " ".join(secrets)
    error = of_json({"status": "error", "errorType": "auth", "error": echo}, 401)
    warning = success({}, warnings=[echo])
    client = promql_client(server.url, **credentials)
    server.replies["up"] = error
    texts = [failure(client)]
    server.replies["up"] = warning
    texts += client.query("up").warnings
    assert not [part for text in texts for secret in secrets for part in (secret[:8],) if part in text]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip(f"{COULD_NOT_RUN}openssl, which makes the test's certificate, is not installed")
    pem = tmp_path / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key.pem")]
    subprocess.run([*command, "-out", str(pem)], check=True, capture_output=True)
    return pem


@pytest.fixture
def secure(certificate: Path) -> Iterator[FakePrometheus]:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, certificate.with_name("key.pem"))
    fake = FakePrometheus(tls)
    yield fake
    fake.close()


def test_only_a_server_with_a_certificate_of_ca_location_is_trusted(secure: FakePrometheus, certificate: Path) -> None:
    assert "certificate verify failed" in failure(promql_client(secure.url, bearer_token=SECRET))
    assert not secure.asked
    secure.replies["up"] = success({("a", "/"): 1})
    assert len(promql_client(secure.url, ca_location=str(certificate)).query("up").series) == 1


def test_a_server_silent_in_or_after_the_tls_handshake_times_out(secure: FakePrometheus, certificate: Path) -> None:
    secure.answer = silent
    assert "no whole answer" in failure(promql_client(secure.url, "300ms", ca_location=str(certificate)))
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        url = f"https://127.0.0.1:{silent_server.getsockname()[1]}"
        assert "no whole answer" in failure(promql_client(url, "300ms"))
