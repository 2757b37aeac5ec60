"""``quotahost explain`` and ``top``, asked of a socket that stands in for a broker's."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from quotahost.cli import start
from quotahost.cli.explain import broker_socket as brokers
from quotahost.cli.top.top import Attached
from tests.fakes import dump
from tests.fakes.admin_socket import FakeAdminSocket
from tests.fakes.holders import holder

# ---- the command ----


class Result(NamedTuple):
    exit_code: int
    output: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command in this process."""

    def command(*arguments: str, name: str = "explain") -> Result:
        try:
            code = start.run([name, *arguments])
        except SystemExit as end:  # argparse's way
            code = int(str(end.code))
        told = capsys.readouterr()
        return Result(code, told.out + told.err)

    return command


Run = Callable[..., Result]
ALICE = ("--client", "alice/app")


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--most", "20"), "--bootstrap is about all brokers: leave --pid, --broker-id and --most out"),
        (("--interval", "31s"), "--interval: at most 30s with --bootstrap"),
        (("--sort", "size"), "--sort: 'size' is none of rate, share, delay, name"),
        (("--type", "read"), "--type: 'read' is none of PRODUCE, FETCH, REQUEST, CONTROLLER_MUTATION"),
        (("--most", "all"), "--most: 'all' is no number from 1 on"),
        (("--once",), "127.0.0.1:1 doesn't answer: nobody listens there\n  -> another"),
    ],
)
def test_what_a_cluster_can_not_do_is_refused(run: Run, option: tuple[str, ...], told: str) -> None:
    result = run("--bootstrap", "127.0.0.1:1", *option, name="top")
    assert (result.exit_code, told in result.output) == (2, True)


def test_how_to_connect_is_refused_where_top_asks_no_cluster(run: Run) -> None:
    result = run("--client-config", "FILE", "--once", name="top")
    assert (result.exit_code, "--client-config is about a cluster: name it by --bootstrap" in result.output) == (
        2,
        True,
    )


def test_the_answer_is_plain_text_and_only_a_newcomer_ends_with_3(broker: FakeAdminSocket, run: Run) -> None:
    state = dump.state(factor=0.5, limit_factor=0.7, cause="broker 2, volume ü\\")
    rows = (dump.row(limit=7e5, rate=7e5), dump.row(type="FETCH", user="<newcomers>", known=False))
    broker.answers["client"] = dump.client(*rows, state=state)
    result = run("--user", "alice", "--client-id", "a\tü b+%")
    assert (result.exit_code, broker.questions) == (3, [["client", "alice", "a\tü b+%"]])
    assert all(f"\n{each}\n" in result.output for each in ("PRODUCE", "FETCH"))
    assert result.output.strip().endswith("PRODUCE is limited by the factor 0.7: broker 2, volume ü\\.")
    assert "\x1b" not in result.output
    broker.answers["client"] = dump.client()
    alone = run(*ALICE, "--type", "produce", "--pid", str(os.getpid()))
    assert (alone.exit_code, "PRODUCE\n" in alone.output, "FETCH\n" in alone.output) == (0, True, False)


def test_a_scope_in_shadow_is_asked_for_only_where_one_is(broker: FakeAdminSocket, run: Run) -> None:
    text = '{"PRODUCE":[1,5e5,"","client-quotas"]}'
    rows = [holder("alice", client_id, rate=7e5, shadow=text) for client_id in ("app", "other")]
    state = dump.state(shadow=["supplier.client-quotas"])
    broker.answers |= {"state": state, "holders": {"holders": rows}}
    broker.answers["client"] = dump.client(dump.row(shadow=text), state=state)
    told = run(*ALICE).output
    assert [each[0] for each in broker.questions] == ["client", "state", "holders", "holders", "holders"]
    assert "would give 500,000 bytes/s (500K), shared by user alice; uses 1,400,000 bytes/s (1400K)" in told
    assert "would be delayed" in told


ORDERS = {"topic": "orders.eu", "place": "budget orders of 500 bytes", "held": True, "budget": "orders", "factor": 0.0}
USED = [
    ["Budget", "orders", name, value] for name, value in (("Bytes", "5e11"), ("Used", "4.99e11"), ("Factor", "0.0"))
]


def test_a_client_that_a_budget_turns_back_is_told_who_fills_it(broker: FakeAdminSocket, run: Run) -> None:
    state = dump.state(fence={"closed": True})
    broker.answers["client"] = dump.client(dump.row(), state=state, mark=ORDERS)
    broker.answers |= {"gauges": USED, "budget": [["orders.eu", 310 * 10**9, 555_556.0], ["orders.us", 10**9, None]]}
    told = run(*ALICE, "--type", "produce").output
    assert broker.questions[-1] == ["budget", "orders"]
    assert (
        "turned back; 499 GB of 500 GB are used in the cluster; "
        "the largest on this broker: orders.eu (310 GB, +2.00 GB/h), orders.us (1.00 GB)\n"
    ) in told
    # Python alone knows the topics, and may hang.
    del broker.answers["budget"]
    without = run(*ALICE, "--type", "produce")
    assert (without.exit_code, "499 GB of 500 GB are used in the cluster\n" in without.output) == (0, True)


def test_a_broker_is_named_by_its_id(broker: FakeAdminSocket, directory: Path, run: Run) -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        other = FakeAdminSocket(directory, "7", process.pid)
        several = run(*ALICE)
        assert run(*ALICE, "--broker-id", "7").exit_code == 0
        process.kill()
        other.close()
    assert len(other.questions) == 1
    assert several.exit_code == 2
    assert f"pid {os.getpid()} (broker 1)" in several.output
    assert f"pid {process.pid} (broker 7)" in several.output
    assert "choose: --pid PID or --broker-id N" in several.output


def test_without_a_broker_the_remedy_says_where_to_run_it(directory: Path, run: Run) -> None:
    (directory / "broker-x-1.sock").touch()
    (directory / f"broker-1-{os.getpid()}.sock").touch()  # no socket
    gone = FakeAdminSocket(directory, "1", 2**22 + 1)  # left behind by a broker that has ended
    for arguments, words in (
        ((), "no broker with quotahost was found"),
        (("--broker-id", "7"), "no broker 7 with quotahost was found"),
        (("--pid", str(os.getpid())), f"process {os.getpid()} has no socket of quotahost's"),
        (("--pid", str(2**22 + 1)), "process 4194305"),
    ):
        told = run(*ALICE, *arguments)
        assert (told.exit_code, words in told.output, "\n  -> " in told.output) == (2, True, True), told.output
    gone.close()


def test_a_socket_of_another_user_or_on_which_one_listens_is_not_asked(
    broker: FakeAdminSocket, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(brokers, "_listener", lambda _: 12345)
        assert "user 12345 listens there" in run(*ALICE).output
    if os.geteuid() == 0:
        os.chown(broker.path, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    told = run(*ALICE)
    assert (told.exit_code, broker.questions) == (2, [])
    assert f"pid {os.getpid()} (broker 1): {broker.path} belongs to user" in told.output
    assert "as the broker's user" in told.output


@pytest.mark.parametrize(
    ("answer", "words", "remedy"),
    [
        ({"error": "no table\x1b]0;"}, "can't be asked: no table\\x1b]0;", "what its log says"),
        ("nonsense", "its answer is no JSON", "what its log says"),
        (dump.client(state={"version": "9"}), "isn't of this version (9; 'fence' is missing)", "quotahost install"),
        ({"state": {"version": "9"}}, "isn't of this version (9; 'client' is missing)", "quotahost install"),
        ([1], "isn't of this version", "quotahost install"),
    ],
)
def test_an_error_has_a_remedy_and_ends_with_2(
    broker: FakeAdminSocket, run: Run, answer: object, words: str, remedy: str
) -> None:
    broker.answers["client"] = answer
    told = run(*ALICE)
    assert told.exit_code == 2
    assert words in told.output
    assert remedy in told.output.partition("-> ")[2]


HOSTILE = "\x1b]0;T\x07\x9b2J\u202e\r\nOPEN -> PAUSE: forged"
LIES: dict[str, Any] = {
    "deep": "[" * 200_000,
    "infinite": dump.client(dump.row(rate=float("inf"), base=float("nan")), state=dump.state(factor=float("inf"))),
    "no-numbers": dump.client(state=dump.state(pid="1", clients=float("inf"))),
    "other-types": dump.client(dump.row(supplier=7), state=dump.state(cause=["x"], topics={"over": [{}]})),
    "names": dump.client(
        dump.row(**dict.fromkeys(("user", "client_id", "supplier"), HOSTILE)),
        state=dump.state(**dict.fromkeys(("node", "version", "cause", "controller"), HOSTILE), sources=[HOSTILE]),
    ),
    "error": {"error": HOSTILE},
    "shadow": dump.client(dump.row(shadow=HOSTILE)),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_whatever_a_false_broker_answers_is_data(broker: FakeAdminSocket, run: Any, lie: Any) -> None:
    broker.answers |= {"client": lie, "uses": lie, "state": lie}
    for told in (run(*ALICE), run("--once", name="top"), run("--volume")):
        assert told.exit_code in (0, 2, 3)
        assert all(char.isprintable() or char == "\n" for char in told.output)
        assert "\nOPEN -> PAUSE" not in told.output


@pytest.mark.parametrize(
    ("piece", "pause"), [(b"x" * 65_536, 0.0), (b"x", 0.02), (b"x", 1.0)], ids=["endless", "trickling", "stopped"]
)
def test_an_answer_that_never_ends_or_never_begins_is_given_up(
    broker: FakeAdminSocket, monkeypatch: pytest.MonkeyPatch, run: Run, piece: bytes, pause: float
) -> None:
    def serve(connected: socket.socket) -> None:
        with suppress(OSError), connected:
            while True:
                time.sleep(pause)
                connected.sendall(piece)

    monkeypatch.setattr(broker, "_serve", serve)
    monkeypatch.setattr(brokers, "_MOST", 1 << 20)
    monkeypatch.setattr(brokers.BrokerSocket.__init__, "__defaults__", (20.0 if pause == 0 else 0.2,))
    words = "its answer has more than 1 MB" if pause == 0 else "no answer within 0 s"
    assert f"can't be asked: {words}" in run(*ALICE).output


@pytest.mark.skipif(os.geteuid() != 0, reason="only root asks for others")
def test_root_believes_the_user_of_a_process_alone(directory: Path, run: Run) -> None:
    """Another user's socket with a name of ours is asked if it is that user's process, and not if it is root's."""
    with subprocess.Popen(["sleep", "60"], user=12345) as process:
        theirs = FakeAdminSocket(directory, "7", process.pid)
        told = run(*ALICE, "--pid", str(process.pid))
        assert (told.exit_code, theirs.questions) == (2, [])
        assert f"{theirs.path} belongs to user 0" in told.output
        process.kill()
        theirs.close()


def test_options_that_are_wrong_end_with_2(run: Run) -> None:
    for options in (["--client", "alice"], ["--type", "x"], ["--volume", "/d", "--client", "a/b"], ["--interval", "x"]):
        assert run(*options, *([] if "--client" in options else ["--volume"])).exit_code == 2
    assert run("--most", "0", name="top").exit_code == 2


@pytest.mark.parametrize("command", [["properties"], ["top", "--json", "--pid"]])
@pytest.mark.parametrize(("reader", "told"), [("gone", ""), ("full", "No space left on device")])
def test_output_that_nobody_takes_ends_the_command_without_a_traceback(
    command: list[str], reader: str, told: str, broker: FakeAdminSocket
) -> None:
    broker.answers["uses"] = dump.uses(*(dump.row(user=f"user-{number}") for number in range(500)))
    command = [sys.executable, "-m", "quotahost.cli", *command, *[str(os.getpid())] * (command[-1] == "--pid")]
    read, write = os.pipe() if reader == "gone" else (None, os.open("/dev/full", os.O_WRONLY))
    if read is not None:
        os.close(read)
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert (done.returncode, done.stderr.count("\n")) == (1, len(told) > 0)
    assert told in done.stderr


def test_a_name_that_the_outputs_encoding_has_not_is_escaped(broker: FakeAdminSocket) -> None:
    broker.answers["uses"] = dump.uses(dump.row(user="Zoë"))
    command = [sys.executable, "-m", "quotahost.cli", "top", "--once", "--pid", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, check=False, env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr, rb"Zo\xeb" in done.stdout) == (0, b"", True)


def test_explain_and_top_start_without_what_takes_long_to_import() -> None:
    code = """import sys
from quotahost.cli import start
start.run(["explain", "--pid", "4194305", "--client", "a/b"])
start.run(["top", "--pid", "4194305"])
print({"pydantic", "typer", "confluent_kafka", "javaproperties", "asyncio"} & sys.modules.keys())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
    assert done.stderr.count("process 4194305") == 2


def test_top_finds_a_broker_that_was_restarted(directory: Path) -> None:
    attached = Attached()
    for node in ("1", "2"):
        started = FakeAdminSocket(directory, node)
        assert attached.look().where == "broker 1 (pid 42)"
        started.close()


# ---- a volume ----


@pytest.fixture
def volume(broker: FakeAdminSocket, tmp_path: Path) -> Path:
    """A log directory of the broker."""
    place = tmp_path / "data"
    (place / "orders-0").mkdir(parents=True)
    (place / "orders-0" / f"{0:020}.log").write_bytes(b"x" * 100)
    broker.answers["state"] = dump.state(log_dirs=[str(place)])
    broker.answers["uses"] = dump.uses(dump.row(rate=3000.0), dump.row(type="FETCH", client_id="reads"))
    return place


def test_a_volume_is_named_by_a_log_directory_or_listed(broker: FakeAdminSocket, volume: Path, run: Run) -> None:
    listed = run("--volume", "--pid", str(os.getpid()))
    assert (listed.exit_code, listed.output.splitlines()[0].split()) == (
        0, ["volume", "capacity", "consumed", "soft", "hard", "factor"],
    )  # fmt: skip
    name = listed.output.splitlines()[1].split()[0]
    for which in (str(volume), name):
        told = run("--volume", which, "--interval", "10ms")
        assert told.exit_code == 0, told.output
        assert f"{name}, with {volume}" in told.output
        assert "\norders " in told.output
        assert "user alice, client-id app" in told.output
        assert "reads" not in told.output
        assert "can't be asked: the Python host did not answer" in told.output
    assert broker.questions[-1] == ["retention", "orders"]
    broker.answers["retention"] = [["orders", "retention.ms", "600000"]]
    assert "orders 10 min" in " ".join(run("--volume", name, "--interval", "10ms").output.split())
    broker.answers["gauges"] = USED
    budgets = " ".join(run("--volume").output.partition("Budgets of storage")[2].split())
    assert "orders 499 GB 500 GB 99.8% turned back" in budgets


def test_a_volume_that_is_not_there_ends_with_2(broker: FakeAdminSocket, volume: Path, run: Run) -> None:
    told = run("--volume", "/dev/nobody")
    assert told.exit_code == 2
    assert "broker 1 has no volume /dev/nobody\n  -> it has: " in told.output
    assert run("--volume", str(volume), *ALICE).exit_code == 2
    broker.answers["state"] = {"version": "9"}
    told = run("--volume", str(volume))
    assert (told.exit_code, "isn't of this version" in told.output) == (2, True)
