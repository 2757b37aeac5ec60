"""PromQL queries over HTTP and volumes of their answers: each fault is a sentence, and credentials go nowhere else."""

import math
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from quotahost.broker.plugins.factor_sources import prometheus as promql
from quotahost.broker.plugins.factor_sources.prometheus import Answer, PrometheusSettings, PromQL, Series, volumes_of
from quotahost.model import ClusterVolumes, Volume
from tests.fakes.prometheus import Answers, FakePrometheus, Reply, Request, of_json, success
from tests.fakes.tls import tls_server

SECRET = "s3cret-t0ken"
LONG = 30.0  # seconds; no test waits for it
BASIC = {"username": "Aladdin", "password": "open sesame"}


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    yield fake
    fake.close()


def promql_client(url: str, timeout: str = "30s", **more: str) -> PromQL:
    given = {"url": url, "capacity": "size", "available": "avail", "timeout": timeout}
    return PromQL(PrometheusSettings.model_validate(given | more))


def failure(client: PromQL) -> str:
    with pytest.raises(promql.QueryFailed) as error:
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
        (Reply(200, b"\xff\xfe\x00"), "not the JSON of a Prometheus server"),
        (of_json({"status": "success"}), "not the JSON"),
        (of_json({"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}), "makes a scalar"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": [1]}}), "not the JSON"),
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
        handler.close_connection = True
        with suppress(OSError):  # the client hangs up
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
            while not server.ended.is_set():
                written += handler.wfile.write(b" " * 65536)
        ended.set()

    ended = threading.Event()
    server.answer = endless
    assert "larger than 16 MiB" in failure(promql_client(server.url))
    assert ended.wait(LONG)
    assert written < 2 * promql.MAX_BYTES


def silent(asked: Request, handler: BaseHTTPRequestHandler) -> None:
    handler.connection.recv(1)  # until the client hangs up
    handler.close_connection = True


def dripping(server: FakePrometheus) -> Answers:
    """Sends a byte now and then, so that no single wait of the client is long."""

    def answer(asked: Request, handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        with suppress(OSError):
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
            while not server.ended.wait(0.02):
                handler.wfile.write(b"x")

    return answer


@pytest.mark.parametrize("drips", [False, True])
def test_a_slow_server_has_the_timeout_in_all(server: FakePrometheus, drips: bool) -> None:
    server.answer = dripping(server) if drips else silent
    assert failure(promql_client(server.url, "300ms")) == "no whole answer within 0.3 s"


@pytest.mark.parametrize(
    ("credentials", "header"),
    [({}, None), ({"bearer_token": SECRET}, f"Bearer {SECRET}"), (BASIC, "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")],
)
def test_credentials_go_as_http_says(server: FakePrometheus, credentials: dict[str, str], header: str | None) -> None:
    server.replies["up"] = success({})
    promql_client(server.url, **credentials).query("up")
    assert server.asked[0].authorization == header


def test_a_redirect_is_not_followed_since_credentials_are_the_servers_own(server: FakePrometheus) -> None:
    with closing(FakePrometheus()) as other:
        server.replies["up"] = Reply(307, b"", {"Location": other.url})
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
def secured(tmp_path: Path) -> Iterator[tuple[FakePrometheus, str]]:
    """A server, and the file of its certificate."""
    tls, certificate, _ = tls_server(tmp_path)
    fake = FakePrometheus(tls)
    yield fake, str(certificate)
    fake.close()


def test_only_a_server_with_a_certificate_of_ca_location_is_trusted(secured: tuple[FakePrometheus, str]) -> None:
    secure, certificate = secured
    assert "certificate verify failed" in failure(promql_client(secure.url, bearer_token=SECRET))
    assert not secure.asked
    secure.replies["up"] = success({("a", "/"): 1})
    assert len(promql_client(secure.url, ca_location=certificate).query("up").series) == 1


def test_a_server_silent_in_or_after_the_tls_handshake_times_out(secured: tuple[FakePrometheus, str]) -> None:
    secure, certificate = secured
    secure.answer = silent
    assert "no whole answer" in failure(promql_client(secure.url, "300ms", ca_location=certificate))
    with socket.create_server(("127.0.0.1", 0)) as silent_server:
        url = f"https://127.0.0.1:{silent_server.getsockname()[1]}"
        assert "no whole answer" in failure(promql_client(url, "300ms"))


# ---- two vectors become volumes: a volume is sound in both of them, and anything else is unknown ----


Rows = list[tuple[str, str, float]]


def answer(rows: Rows, *warnings: str) -> Answer:
    return Answer(tuple(Series({"broker": b, "disk": v}, value) for b, v, value in rows), warnings)


def volumes(capacity: Rows, used: Rows, *warnings: str, available: bool = True, **more: Any) -> ClusterVolumes:
    answers = answer(capacity), answer(used, *warnings)
    return volumes_of(*answers, available=available, labels=("broker", "disk"), **more)


def test_a_volume_may_be_fuller_than_its_capacity() -> None:
    fuller = volumes([("1", "/", 100.0)], [("1", "/", 101.0)], available=False)
    assert fuller == ClusterVolumes((Volume("1", "/", 100, 101),))


FINE: Rows = [("1", "/", 100.0)]


@pytest.mark.proves("faults.prometheus-down")
@pytest.mark.parametrize(
    ("capacity", "available", "told"),
    [
        ([1.0], [], "capacity 1, available none"),
        ([], [1.0], "capacity none, available 1"),
        ([math.nan], [1.0], "capacity nan"),
        ([1.0], [math.inf], "available inf"),
        ([1e300], [1.0], "capacity 1e+300"),
        ([0.0], [0.0], "capacity 0"),
        ([5.0], [6.0], "capacity 5, available 6"),
        ([5.0], [-1.0], "available -1"),
        ([9.0, 9.0], [1.0], "capacity 9, 9"),
        ([9.0], [1.0, 1.0], "available 1, 1"),
    ],
)
def test_what_is_not_sound_is_unknown_and_no_volume(capacity: list[float], available: list[float], told: str) -> None:
    sizes, others = (FINE + [("2", "/", value) for value in values] for values in (capacity, available))
    result = volumes(sizes, others)
    (sentence,) = result.unknown
    assert sentence.startswith("broker 2, disk /: ")
    assert told in sentence
    assert result.volumes == (Volume("1", "/", 100, 0),)


def test_a_series_without_a_label_a_warning_and_nothing_at_all_are_unknown() -> None:
    assert "broker '', disk /: " in volumes([*FINE, ("", "/", 9.0)], [*FINE, ("", "/", 9.0)]).unknown[0]
    assert volumes(FINE, FINE, "a shard is down").unknown == ("the server warns: a shard is down",)
    assert volumes([], []).unknown == ("the queries find no series",)


def test_an_expected_broker_without_a_sound_volume_is_unknown() -> None:
    broken: Rows = [*FINE, ("2", "/", math.nan)]
    result = volumes(broken, [*FINE, ("2", "/", 1.0)], expected=("1", "2", "3"))
    assert result.unknown[1:] == tuple(f"expected broker '{broker}' has no volume" for broker in (2, 3))


def test_there_are_at_most_20_sentences_of_one_short_line_and_the_last_says_how_many_are_left_out() -> None:
    sentences = volumes([("1", str(n), 1.0) for n in range(promql.MAX_SENTENCES + 5)], []).unknown
    assert len(sentences) == promql.MAX_SENTENCES
    assert sentences[-1] == "and 6 more"
    (sentence,) = volumes([("x" * 100_000 + "\n", "a\nb", 1.0)] * 99, []).unknown
    assert (len(sentence) < 500, "\n" in sentence) == (True, False)
