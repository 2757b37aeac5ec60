"""Tests ``quotahost explain`` and ``top`` with a fake of a broker's admin socket, and the process of any command."""

import os
import signal
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from quotahost.cli.explain import broker_socket as brokers
from quotahost.cli.top.live import Question
from quotahost.cli.top.top import Attached
from tests.broker.support.commands import Terminal
from tests.fakes import dump
from tests.fakes.admin_socket import FakeAdminSocket, short_directory
from tests.unit.cli.commands import told

ALICE = ("explain", "--client", "alice/app")
VOLUME = ("explain", "--volume")
OURS = str(os.getpid())
CLUSTER = ("--bootstrap", "127.0.0.1:1")
NO_PID = str(2**22 + 1)
NOBODY = "no such broker with quotahost was found that this user may ask on this machine"


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("top", (*CLUSTER, "--most", "20"), "--bootstrap can't be combined with --pid, --broker-id or"),
        *(("top", ("--most", text), f"--most: {text!r} ") for text in ("all", "0", "2147483648")),
        ("top", (*CLUSTER, "--once"), "127.0.0.1:1 doesn't answer: no process listens on this address\n  -> another"),
        ("top", ("--client-config", "FILE", "--once"), "--looks-topic need --bootstrap"),
        ("explain", (), "give --client USER/CLIENT, or both --user and --client-id; or --volume"),
        *(("explain", options, "give --client USER/CLIENT, or both") for options in (
            ("--user", "alice"), ("--client", "a/b", "--user", "a"), ("--client", "a/b", "--client-id", "b"))),
        *(("explain", ("--client", client), f"--client {client!r} is not USER/CLIENT") for client in ("alice", "/app")),
        ("explain", ("--volume", "/d", "--client", "a/b"), "--volume can't be combined with --client"),
        *((name, ("--pid", "1", "--broker-id", "2"), "--broker-id: not allowed with argument --pid")
          for name in ("explain", "top")),
        ("top", (*CLUSTER, "--client-config", "/nope"), "/nope can't be read"),
    ],
)  # fmt: skip
def test_options_that_are_wrong_end_with_2(name: str, options: tuple[str, ...], words: str) -> None:
    told(2, [words], name, *options)


def test_the_answer_is_plain_text_and_only_a_newcomer_ends_with_3(broker: FakeAdminSocket) -> None:
    rows = (dump.row(limit=7e5, rate=7e5), dump.row(type="FETCH", user="<newcomers>", known=False))
    broker.answers["client"] = dump.client(*rows, state=dump.state(factor=0.5, limit_factor=0.7, cause="broker 2, ü\\"))
    output = told(3, ("\nPRODUCE\n", "\nFETCH\n"), "explain", "--user", "alice", "--client-id", "a\tü b+%")
    assert broker.questions == [["client", "alice", "a\tü b+%"]]
    assert output.strip().endswith("PRODUCE is limited by the factor 0.7: broker 2, ü\\.")
    assert "\x1b" not in output
    broker.answers["client"] = dump.client(address="10.0.0.9", passes=True)
    named = ("explain", "--client", "CN=a/b/", "--type", "produce", "--pid", OURS)
    words = ("PRODUCE\n", ", lately from 10.0.0.9\n", "open; this client passes it in every state\n")
    assert "FETCH\n" not in told(0, words, *named)
    assert broker.questions[-1] == ["client", "CN=a/b", ""], "the last slash divides user and client-id"


ORDERS = {"topic": "orders.eu", "place": "budget orders of 500 bytes", "held": True, "budget": "orders", "factor": 0.0}
USED = [["Budget", "orders", *each] for each in (("Bytes", "5e11"), ("Used", "4.99e11"), ("Factor", "0.0"))]


def test_a_client_that_a_budget_turns_back_is_told_who_fills_it(broker: FakeAdminSocket) -> None:
    broker.answers["client"] = dump.client(dump.row(), state=dump.state(fence={"closed": True}), mark=ORDERS)
    broker.answers |= {"gauges": USED, "budget": [["orders.eu", 310 * 10**9, 555_556.0], ["orders.us", 10**9, None]]}
    used = "turned back; 499 GB of 500 GB are used in the cluster"
    largest = "; the largest on this broker: orders.eu (310 GB, +2.00 GB/h), orders.us (1.00 GB)\n"
    told(0, [used + largest], *ALICE, "--type", "produce")
    assert broker.questions[-1] == ["budget", "orders"]
    told(0, ["\ncause: budget orders x0 for its writers\n"], "top", "--once", "--pid", OURS)
    # Only Python knows the topics, and it may hang.
    del broker.answers["budget"]
    told(0, [f"{used}\n"], *ALICE, "--type", "produce")


def test_a_broker_is_named_by_its_id(broker: FakeAdminSocket, directory: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        other = FakeAdminSocket(directory, "7", process.pid)
        both = (f"pid {OURS} (broker 1)", f"pid {process.pid} (broker 7)", "choose: --pid PID or --broker-id N")
        told(2, both, *ALICE)
        told(0, (), *ALICE, "--broker-id", "7")
        process.kill()
        other.close()
    assert len(other.questions) == 1


@pytest.mark.skipif(not Path("/proc/net/unix").exists(), reason="this system doesn't list listening sockets")
def test_a_socket_left_behind_is_no_broker_though_its_pid_is_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    with short_directory() as temporary:
        monkeypatch.setenv("TMPDIR", str(temporary))
        place = temporary / f"quotahost-{os.geteuid()}"
        place.mkdir()
        broker = FakeAdminSocket(place)
        assert OURS in [str(each.pid) for each in brokers.running()]
        broker.path.rename(place / "kept")
        broker.close()
        (place / "kept").rename(broker.path)
        assert OURS not in [str(each.pid) for each in brokers.running()]


@pytest.mark.parametrize("arguments", [(), ("--broker-id", "7"), ("--pid", OURS), ("--pid", NO_PID)])
def test_without_a_broker_it_says_where_to_run_it(directory: Path, arguments: tuple[str, ...]) -> None:
    (directory / "broker-x-1.sock").touch()
    (directory / f"broker-1-{OURS}.sock").touch()  # a file, no socket
    gone = FakeAdminSocket(directory, "1", int(NO_PID))  # left behind by a broker that has ended
    told(2, (NOBODY, "\n  -> run this on the broker's machine, as the broker's user"), *ALICE, *arguments)
    gone.close()


def test_a_socket_of_another_user_is_not_asked(broker: FakeAdminSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(brokers, "_listener", lambda _: 12345)
        told(2, ["user 12345 listens on its socket"], *ALICE)
    if os.geteuid() == 0:
        os.chown(broker.path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    told(2, [NOBODY], *ALICE)
    assert broker.questions == []


@pytest.mark.parametrize(
    ("answer", "words", "remedy"),
    [
        ({"error": "no table\x1b]0;"}, "failed: no table\\x1b]0;", "what its log says"),
        ("nonsense", "its answer is not JSON", "what its log says"),
        ("x" * 1001, "its answer has no end", "what its log says"),
        (dump.client(state={"version": "9"}), "runs another version of quotahost", "quotahost install"),
    ],
)
def test_errors_have_a_remedy_and_end_with_2(
    broker: FakeAdminSocket, monkeypatch: pytest.MonkeyPatch, answer: object, words: str, remedy: str
) -> None:
    monkeypatch.setattr(brokers, "_MOST", 1000)
    broker.answers |= {"client": answer, "uses": answer, "state": answer}
    for command in (ALICE, ("top", "--once"), VOLUME):
        assert remedy in told(2, [words], *command).partition("-> ")[2]


def test_a_broker_that_does_not_answer_is_given_up(broker: FakeAdminSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_serve", lambda _: None)
    monkeypatch.setattr(brokers, "TIMEOUT", 0.2)
    told(2, ["failed: no answer within 0 s"], *ALICE)


# ---- the process ----


def process(*arguments: str, **more: Any) -> subprocess.CompletedProcess[Any]:
    command = [sys.executable, "-m", "quotahost", *arguments]
    return subprocess.run(command, **({"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more))


@pytest.mark.parametrize("command", [("properties",), ("top", "--json", "--pid", OURS)])
@pytest.mark.parametrize(("taker", "code", "told"), [("gone", 1, b""), ("full", 2, b"No space left on device\n")])
def test_output_that_nobody_takes_ends_it_without_a_traceback(
    command: tuple[str, ...], taker: str, code: int, told: bytes, broker: FakeAdminSocket
) -> None:
    broker.answers["uses"] = dump.uses(*(dump.row(user=f"user-{number}") for number in range(500)))
    read, write = os.pipe() if taker == "gone" else (None, os.open("/dev/full", os.O_WRONLY))
    if read is not None:
        os.close(read)
    done = process(*command, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr.rpartition(b": ")[2]) == (code, told)


@pytest.mark.parametrize(("closed", "told"), [(0, True), (1, False), (2, True)])
def test_a_stream_that_is_closed_is_an_empty_one(closed: int, told: bool, broker: FakeAdminSocket) -> None:
    broker.answers["uses"] = dump.uses(dump.row(user="zoe"))
    done = process("top", "--pid", OURS, preexec_fn=lambda: os.close(closed))
    assert (done.returncode, b"zoe" in done.stdout, done.stderr) == (0, told, b"")
    # Text for stderr never goes to stdout, whichever stream is closed.
    done = process("explain", "--client", "a/b", "--pid", NO_PID, preexec_fn=lambda: os.close(closed))
    assert (done.returncode, done.stdout, NOBODY.encode() in done.stderr) == (2, b"", closed != 2)


def test_a_path_that_the_system_refuses_is_named(tmp_path: Path) -> None:
    done = process("new", "supplier", "a" * 300, "--directory", str(tmp_path))
    assert (done.returncode, done.stderr.rpartition(b": ")[2]) == (2, b"File name too long\n")


def test_an_output_that_can_not_show_all_gets_what_it_can(broker: FakeAdminSocket) -> None:
    broker.answers["uses"] = dump.uses(dump.row(user="Zoë"))
    done = process("top", "--once", "--pid", OURS, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr, rb"Zo\xeb" in done.stdout) == (0, b"", True)
    with Terminal("top", "--pid", OURS, term="dumb") as top:  # it only writes lines, so it gets one look
        top.shows("Zoë")
        assert top.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
@pytest.mark.usefixtures("broker")
def test_a_top_that_is_ended_leaves_the_terminal_as_it_was(number: int) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs ignore SIGINT, and top would inherit it
    with Terminal("top", "--pid", OURS) as top:
        before = termios.tcgetattr(top._theirs)
        top.shows("v volumes  q quit")
        assert termios.tcgetattr(top._theirs) != before
        os.kill(top._program.pid, number)
        top.shows("\x1b[?1049l")
        assert (top.ends(), termios.tcgetattr(top._theirs)) == (128 + number, before)


@pytest.mark.parametrize(
    ("words", "completed"), [("do", b"doctor"), ("simulate disk --pol", b"--policy"), ("new fac", b"factor-source")]
)
def test_bash_completes_commands_options_and_choices(words: str, completed: bytes) -> None:
    asked = {"COMP_WORDS": f"quotahost {words}", "COMP_CWORD": str(len(words.split()))}
    done = process(env=os.environ | asked | {"_QUOTAHOST_COMPLETE": "complete_bash"})
    assert (done.returncode, done.stdout.split()) == (0, [completed])


def test_explain_and_top_start_without_what_takes_long_to_import() -> None:
    code = f"""import sys
from quotahost.cli import start
start.run(["explain", "--pid", "{NO_PID}", "--client", "a/b"])
start.run(["top", "--pid", "{NO_PID}"])
print({{"pydantic", "typer", "confluent_kafka", "javaproperties", "asyncio"}} & sys.modules.keys())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert done.stderr.count(NOBODY) == 2


# ---- a volume ----


def test_a_volume_is_named_by_a_log_directory_or_listed(broker: FakeAdminSocket, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    (tmp_path / "orders-0" / f"{0:020}.log").write_bytes(b"x" * 100)
    broker.answers["state"] = dump.state(properties={"log.dirs": str(tmp_path)})
    broker.answers["uses"] = dump.uses(dump.row(rate=3000.0), dump.row(type="FETCH", client_id="reads"))
    head, row, *_ = told(0, (), *VOLUME, "--pid", OURS).splitlines()
    assert head.split() == ["volume", "capacity", "consumed", "soft", "hard", "factor"]
    name = row.split()[0]
    assert Attached().answer(Question()).volumes == [Question(volume=name)]
    words = (f"{name}, with {tmp_path}", "\norders ", "user alice, client-id app",
             "failed: the Python host did not answer")  # fmt: skip
    for which in (f"{tmp_path}/", name):
        assert "reads" not in told(0, words, *VOLUME, which, "--interval", "10ms")
    assert broker.questions[-1] == ["retention", "orders"]
    broker.answers["gauges"] = USED
    assert " ".join(told(0, (), *VOLUME).split()).endswith("orders 499 GB 500 GB 99.8 % 0")
    told(2, ["broker 1 (pid 42) has no volume /dev/nobody\n  -> it has: "], *VOLUME, "/dev/nobody")
    broker.answers["state"] = {"version": "9"}
    told(2, ["runs another version of quotahost"], *VOLUME, name)
