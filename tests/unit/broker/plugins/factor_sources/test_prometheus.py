"""Tests the factor source ``prometheus``: properties, queries over HTTP, volumes from answers, memory and log.

Each fault is reported in a sentence, and credentials go only to the server.
"""

import json
import math
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

from harness.system.waiting import eventually
from quotahost.broker.plugins.factor_sources.prometheus import Answer, Prometheus, PromQL, volumes_of
from quotahost.model import ClusterVolumes, Volume
from quotahost.settings.declaration import SettingsError
from quotahost.settings.sections import read_section
from tests.fakes.plugin_context import Clock, context
from tests.fakes.tls import tls_server

SECRET = "s3cret-t0ken"
BASIC = {"username": "Aladdin", "password": "open sesame"}


class Request(NamedTuple):
    path: str
    authorization: str | None


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = {}


def of_json(content: Any, status: int = 200) -> Reply:
    return Reply(status, json.dumps(content).encode())


def success(vector: Mapping[tuple[str, str], float | str], **more: Any) -> Reply:
    """The reply with these values by instance and mountpoint."""
    result = [
        {"metric": {"instance": broker, "mountpoint": volume}, "value": [0, str(value)]}
        for (broker, volume), value in vector.items()
    ]
    return of_json({"status": "success", "data": {"resultType": "vector", "result": result}} | more)


class FakePrometheus:
    """Answers with ``replies[query]``; if ``answer`` is set, it writes the response. ``asked`` has all requests."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.replies: dict[str, Reply] = {}
        self.answer: Callable[[BaseHTTPRequestHandler], object] | None = None
        self.asked: list[Request] = []
        self.ended = threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                fake.asked.append(Request(self.path, self.headers.get("Authorization")))
                if fake.answer is not None:
                    fake.answer(self)
                    return
                reply = fake.replies[form["query"][0]]
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    fake = FakePrometheus()
    yield fake
    fake.close()


def section_of(url: str = "http://prometheus:9090", **more: str) -> Any:
    given = {"url": url, "capacity": "size", "available": "avail"} | more
    named = {name.replace("_", "-"): text for name, text in given.items() if text}
    return read_section("prometheus", named, Prometheus.Section)


def promql_client(url: str, timeout: str = "30s", **more: str) -> PromQL:
    return PromQL(section_of(url, timeout=timeout, **more))


def failure(client: PromQL) -> str:
    with pytest.raises(Exception) as error:  # noqa: PT011 - the words are what matters
        client.query("up")
    assert isinstance(error.value, Exception)
    return client.reason(error.value)


def test_an_expression_arrives_as_it_is_and_an_instant_vector_is_read_with_warnings(server: FakePrometheus) -> None:
    expression = 'sum by (a) (x{b=~"/data.+", c="ä&=%"}) > 0'
    server.replies[expression] = success({("a", "/"): "1.5", ("b", "/"): "NaN"}, warnings=["one shard is down"])
    answer = promql_client(server.url + "/prom/").query(expression)
    assert [labels for labels, _ in answer.series] == [{"instance": name, "mountpoint": "/"} for name in "ab"]
    assert (answer.series[0][1], math.isnan(answer.series[1][1])) == (1.5, True)
    assert answer.warnings == ("one shard is down",)
    (asked,) = server.asked
    assert (asked.path, asked.authorization) == ("/prom/api/v1/query", None)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (of_json({"status": "error", "errorType": "bad_data", "error": "1:3: parse error"}, 400),
         "the server says bad_data: 1:3: parse error"),
        (Reply(401, b"<html>"), "HTTP status 401 Unauthorized"),
        (Reply(200, b"<html>login</html>"), "not the JSON of a Prometheus server"),
        (Reply(200, b"[" * 200_000), "not the JSON of a Prometheus server"),
        (Reply(200, b"\xff\xfe\x00"), "not the JSON of a Prometheus server"),
        (of_json({"status": "success"}), "not the JSON"),
        (of_json({"status": "success", "data": {"resultType": "scalar", "result": [0, "1"]}}), "returns a scalar"),
        (of_json({"status": "success", "data": {"resultType": "vector", "result": [1]}}), "not the JSON"),
        (Reply(308, b""), "redirects to nowhere"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_failure_with_a_sentence(server: FakePrometheus, reply: Reply, sentence: str) -> None:
    server.replies["up"] = reply
    assert sentence in failure(promql_client(server.url))


def test_an_answer_is_read_to_16_mib_and_no_further(server: FakePrometheus) -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        with suppress(OSError):  # the client hangs up
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
            while not server.ended.is_set():
                handler.wfile.write(b" " * 65536)

    server.answer = endless
    assert "larger than 16 MiB" in failure(promql_client(server.url))


def silent(handler: BaseHTTPRequestHandler) -> None:
    handler.connection.recv(1)  # returns when the client hangs up


def test_a_slow_server_has_the_timeout_in_all(server: FakePrometheus) -> None:
    def dripping(handler: BaseHTTPRequestHandler) -> None:
        """Sends a byte every 20 ms, so that no single wait of the client is long."""
        with suppress(OSError):
            handler.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n")
            while not server.ended.wait(0.02):
                handler.wfile.write(b"x")

    for server.answer in (silent, dripping):
        assert failure(promql_client(server.url, "300ms")) == "no complete answer within 0.3 s"


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
def test_credentials_go_as_http_says_and_are_hidden_where_a_server_repeats_them(
    server: FakePrometheus, credentials: dict[str, str], secrets: list[str], padding: int
) -> None:
    echo = "." * padding + " ".join(secrets)
    client = promql_client(server.url, **credentials)
    server.replies["up"] = of_json({"status": "error", "errorType": "auth", "error": echo}, 401)
    texts = [failure(client)]
    server.replies["up"] = success({}, warnings=[echo])
    texts += client.query("up").warnings
    assert server.asked[0].authorization == f"{'Basic' if 'password' in credentials else 'Bearer'} {secrets[-1]}"
    assert not [text for text in texts for secret in secrets if secret[:8] in text]


def test_only_a_server_with_a_certificate_of_ca_location_is_trusted(tmp_path: Path) -> None:
    tls, certificate, _ = tls_server(tmp_path)
    with closing(FakePrometheus(tls)) as secure:
        assert "certificate verify failed" in failure(promql_client(secure.url, bearer_token=SECRET))
        assert not secure.asked
        secure.replies["up"] = success({("a", "/"): 1})
        assert len(promql_client(secure.url, ca_location=str(certificate)).query("up").series) == 1
        with pytest.raises(ValueError, match="ca-location can't be read: No such file"):
            promql_client(secure.url, ca_location=f"{certificate}.gone")


# ---- volumes from two vectors: a volume must be valid in both vectors, and anything else is unknown ----

Rows = list[tuple[str, str, float]]
FINE: Rows = [("1", "/", 100.0)]


def volumes(capacity: Rows, available: Rows, *warnings: str, expected: str = "") -> ClusterVolumes:
    def answer(rows: Rows, warnings: tuple[str, ...] = ()) -> Answer:
        return Answer(tuple(({"broker": b, "disk": v}, value) for b, v, value in rows), warnings)

    section = section_of(broker_label="broker", volume_label="disk", expected=expected)
    return volumes_of(answer(capacity), answer(available, warnings), section)


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


def test_what_the_queries_leave_out_and_the_server_warns_of_is_unknown() -> None:
    assert "broker '', disk /: " in volumes([*FINE, ("", "/", 9.0)], [*FINE, ("", "/", 9.0)]).unknown[0]
    assert volumes(FINE, FINE, "a shard is down").unknown == ("the server warns: a shard is down",)
    assert volumes([], []).unknown == ("the queries return no series",)
    missing = volumes([*FINE, ("2", "/", math.nan)], [*FINE, ("2", "/", 1.0)], expected="1,2,3")
    assert missing.unknown[1:] == tuple(f"expected broker '{broker}' has no volume" for broker in (2, 3))


def test_there_are_at_most_20_sentences_of_one_short_line_and_the_last_says_how_many_are_left_out() -> None:
    sentences = volumes([("1", str(n), 1.0) for n in range(25)], []).unknown
    assert (len(sentences), sentences[-1]) == (21, "... and 5 more sentences")
    (sentence,) = volumes([("x" * 100_000 + "\n", "a\nb", 1.0)] * 99, []).unknown
    assert (len(sentence) < 500, "\n" in sentence) == (True, False)


# ---- the source: its properties and its memory ----

WRONG: dict[str, list[dict[str, str]]] = {
    "is no base URL; write one such as http://prometheus:9090, without ? and #": [
        {"url": each} for each in ("prometheus:9090", "ftp://prometheus", "http://", "http://a b/", "http://a/?b=c")
    ],
    "exactly one of available and consumed": [{"available": ""}, {"consumed": "used"}],
    "has 'a' twice": [{"expected": "a,b,a"}],
    "set both username and password": [{"username": "me"}, {"password": "secret-word"}],
    "username=me:***: must match pattern '^[^:]+$'": [{"username": "me:hunter2", "password": "x"}],
    "not both": [{"username": "me", "password": "secret-word", "bearer_token": "secret-token"}],
    "ca-location is for https": [{"ca_location": "/etc/ca.pem"}],
    # An error about a secret does not show it.
    "url must not hold a user name, password or @; set": [
        {"url": url} for url in ("http://scraper:hunter2@prometheus:9090", "scraper:hunter2@prometheus")
    ],
    "bearer-token": [{"bearer_token": token} for token in ("hunter2\r\nX-Other: 1", "hunter2 hunter2", "hunter2ä")],
}


@pytest.mark.parametrize(
    ("sentence", "section"), [(sentence, section) for sentence, sections in WRONG.items() for section in sections]
)
def test_wrong_properties_are_refused_with_a_sentence(sentence: str, section: dict[str, str]) -> None:
    with pytest.raises(SettingsError) as error:
        section_of(**section)
    assert sentence in str(error.value)
    assert not [secret for secret in ("hunter2", "scraper", "secret-word") if secret in str(error.value)]


@pytest.mark.parametrize(("interval", "longest"), [("30s", 60), ("50s", 100), ("1h", 7200)])
def test_answers_hold_for_validity_or_two_intervals(server: FakePrometheus, interval: str, longest: float) -> None:
    volume = ("kafka-1", "/data")
    server.replies = {"size": success({volume: 100}), "avail": success({volume: 25})}
    clock, given = Clock(), context(name="prometheus", own=section_of(server.url, interval=interval))
    plugin = Prometheus(given, clock)
    known = eventually(plugin.read, what="the plugin has an answer")
    assert known == ClusterVolumes((Volume("kafka-1", "/data", 100, 75),))
    clock.now += longest
    assert plugin.read() == known
    clock.now += 1
    too_old = plugin.read()
    assert too_old is not None
    assert (too_old.volumes, len(too_old.unknown)) == (known.volumes, 1)
    given.closing.close()
