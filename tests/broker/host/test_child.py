"""Python runs in a process of its own: its death harms no client, and a new Python replaces it without a restart."""

import os
import signal
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Final

import pytest

from harness.clients.producer import ProducerLoad
from harness.clients.raw import introduce_clients
from harness.java.helper import HelperError
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.admin_socket import quota_now
from harness.kafka.node import KafkaNode
from harness.plugin import PREFIX
from harness.system.ports import free_port
from harness.system.process import children, command
from harness.system.waiting import eventually
from tests.broker.support.node import PLUGINS, callback_node, changed, tell
from tests.broker.support.seen import ANYONE, gauge, has_own_quota

VALIDITY: Final = 5  # seconds
GENERATION: Final = PREFIX + "python.generation"
#: The rate in the code of each version of the supplier; the last version can't import quotahost.
RATES: Final = {"v1": "5e6", "v2": "7e6", "broken": "1 / 0", "half": "5e6"}


@pytest.fixture(scope="module")
def current(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The link to the environment of the next Python; beside it is an environment for each version of the supplier."""
    folder = tmp_path_factory.mktemp("environments")
    for version, rate in RATES.items():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / version)], check=True)
        packages = next((folder / version).glob("lib/python*/site-packages"))
        # The environment's own folder comes first, so no other version of the plugin is imported.
        (packages / "ours.pth").write_text(f"import site; site.addsitedir({site.getsitepackages()[0]!r})\n")
        copytree(PLUGINS / "outsider-1.0.dist-info", packages / "outsider-1.0.dist-info")
        code = (PLUGINS / "outsider.py").read_text().replace("RATE = 5_000_000.0", f"RATE = {rate}")
        (packages / "outsider.py").write_text(code)
    (packages / "pydantic.py").write_text("raise ImportError('pydantic is half installed')\n")
    (folder / "current").symlink_to("v1")
    return folder / "current"


def node_of(directory: Path, current: Path) -> KafkaNode:
    settings = {"supplier": "outsider", "python.process": "child", "python.executable": str(current / "bin/python3")}
    settings |= {"kafka.ssl.key.password": "hunter2-secret", "metrics.port": str(free_port())}
    return callback_node(directory, settings, env={"ROLES": str(directory)})


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, current: Path) -> Iterator[KafkaNode]:
    with node_of(tmp_path_factory.mktemp("node"), current) as node:
        create_topic(node, "t")
        yield node


@pytest.fixture(scope="module")
def load(node: KafkaNode) -> Iterator[ProducerLoad]:
    """A producer that uses up its quota during all tests."""
    with ProducerLoad(node.client_config(client_id="good"), "t") as load:
        eventually(lambda: has_own_quota(node, ANYONE, "good"))
        yield load


@pytest.fixture(autouse=True)
def _the_client_keeps_its_quota(node: KafkaNode, load: ProducerLoad) -> Iterator[None]:
    yield
    before = load.meter.bytes
    eventually(lambda: load.meter.bytes > before)
    assert load.errors == []
    assert not quota_now(node, ANYONE, "good").newcomer


def pythons(pid: int) -> list[int]:
    """The child processes of ``pid`` in which a Python serves or starts."""
    return [child for child in children(pid) if "broker.host.bridge" in command(child)]


def harm(node: KafkaNode, how: str) -> None:
    """Makes the supplier harm its process in this way when a client-id that begins with "faulty" arrives next."""
    tell(Path(node.env["ROLES"]) / "supplier", how)


def known_again(node: KafkaNode, *client_ids: str) -> None:
    """Waits until these clients have a quota of their own."""
    introduce_clients(node, client_ids)
    for client_id in client_ids:
        eventually(lambda c=client_id: has_own_quota(node, ANYONE, c), what=f"{client_id} has its own quota")


def lead(current: Path, version: str) -> None:
    current.unlink()
    current.symlink_to(version)


@pytest.mark.proves("faults.native-crash")
def test_a_kill_under_load_fails_no_request_and_new_clients_are_answered_again(node: KafkaNode, current: Path) -> None:
    start, before = node.log.end(), gauge(node, "Host", "Restarts")
    lead(current, "broken")  # the next Python uses the environment of the one that died
    os.kill(pythons(node.pid)[0], signal.SIGKILL)
    known_again(node, *(f"new-{n}" for n in range(100)))
    node.wait_for_log(r"it starts again in 500 ms. the process \d+ ended by SIGKILL", start=start)
    assert gauge(node, "Host", "Restarts") == before + 1
    assert len(pythons(node.pid)) == 1
    lead(current, "v1")


@pytest.mark.parametrize(
    ("how", "ended"), [("segfault", "by SIGSEGV"), ("abort", "by SIGABRT"), ("fork", "with exit code 3")]
)
@pytest.mark.proves("faults.native-crash")
def test_a_native_crash_ends_python_alone_and_the_next_one_answers(node: KafkaNode, how: str, ended: str) -> None:
    start = node.log.end()
    harm(node, how)
    known_again(node, f"faulty-{how}")
    node.wait_for_log(f"it starts again .* ended {ended}", start=start)
    if how in ("segfault", "abort"):
        node.wait_for_log("outsider.py", start=start)  # the stack that faulthandler writes


def test_if_memory_runs_out_the_kernel_kills_python_before_the_broker(node: KafkaNode) -> None:
    # The kernel adds so many thousandths of all memory to the memory of the process. So with 1,000, the most, a broker
    # with 0 never counts as larger, whatever part of a container's memory its heap takes.
    assert Path(f"/proc/{pythons(node.pid)[0]}/oom_score_adj").read_text() == "1000\n"


def test_what_a_plugin_prints_goes_to_the_log_and_what_it_reads_is_empty(node: KafkaNode) -> None:
    start, before = node.log.end(), gauge(node, "Host", "Restarts")
    harm(node, "print")
    known_again(node, "faulty-print")
    node.wait_for_log(r"printed by a plugin, with \*\*\* (\\x00)+ +x+", start=start)
    node.wait_for_log("written to descriptor 1", start=start)
    assert max(map(len, node.log_text(start).splitlines())) < 5_000
    assert gauge(node, "Host", "Restarts") == before


def test_a_process_that_a_plugin_forks_ends_by_sigterm(node: KafkaNode) -> None:
    before = gauge(node, "Host", "Restarts")
    harm(node, "end-worker")
    known_again(node, "faulty-worker")
    assert gauge(node, "Host", "Restarts") == before


@pytest.mark.proves("faults.hang")
def test_a_plugin_that_hangs_beyond_validity_is_killed_with_its_process(node: KafkaNode) -> None:
    start = node.log.end()
    # Only this test has a short validity, because a busy machine may delay Python for some seconds in the others.
    with changed(node, {"validity": f"{VALIDITY}s"}):
        harm(node, "gil-for-good")
        introduce_clients(node, ["faulty-gil"])
        node.wait_for_log(f"ended by SIGKILL: it was silent for {PREFIX}validity, and killed", start=start)
        eventually(lambda: has_own_quota(node, ANYONE, "faulty-gil"))
        eventually(lambda: gauge(node, "Lease", "Expired") == 0)


@pytest.mark.proves("faults.stopped-broker")
def test_a_broker_that_was_stopped_for_longer_than_validity_goes_on_with_its_python(node: KafkaNode) -> None:
    counted = [("Lease", "FallbackApplied"), ("Host", "Restarts"), ("Factor", "Transitions")]
    before, python = [gauge(node, *each) for each in counted], pythons(node.pid)
    with changed(node, {"validity": f"{VALIDITY}s", "factor.source": "local"}):
        eventually(lambda: gauge(node, "Factor", "Unknown") == 0)  # the disks have answered
        os.kill(python[0], signal.SIGSTOP)
        time.sleep(0.3)  # wait until no call is under way, because its end would renew the lease
        os.kill(node.pid, signal.SIGSTOP)  # both stand still, as when a virtual machine is moved
        time.sleep(1.5 * VALIDITY)
        os.kill(python[0], signal.SIGCONT)
        os.kill(node.pid, signal.SIGCONT)
        known_again(node, "after-the-stop")
    assert [gauge(node, *each) for each in counted] == before
    assert pythons(node.pid) == python


def test_a_plugin_is_upgraded_under_load_and_back_without_a_restart(node: KafkaNode, current: Path) -> None:
    restarts = gauge(node, "Host", "Restarts")
    for version in ("v2", "v1"):
        before = pythons(node.pid)
        lead(current, version)
        alter_broker_config(node, {GENERATION: version})

        def answers(version: str = version) -> bool:
            quota = quota_now(node, ANYONE, "good")
            assert not quota.newcomer, "a known client never becomes a newcomer"
            return quota.base == float(RATES[version])

        eventually(answers, what=f"the plugin {version} answers")
        eventually(lambda before=before: len(pythons(node.pid)) == 1 and pythons(node.pid) != before)
        known_again(node, f"after-{version}")
    assert gauge(node, "Host", "Restarts") == restarts


@pytest.mark.proves("faults.bad-plugin-version")
@pytest.mark.parametrize(
    ("version", "reason"),
    [("broken", "ZeroDivisionError"), ("half", "ended with exit code 1: ImportError: pydantic is half installed")],
)
def test_a_version_that_does_not_come_up_is_refused(node: KafkaNode, current: Path, version: str, reason: str) -> None:
    before = pythons(node.pid)
    lead(current, version)
    with pytest.raises(HelperError, match=reason):
        alter_broker_config(node, {GENERATION: version})
    eventually(lambda: pythons(node.pid) == before)
    known_again(node, f"after-{version}")
    lead(current, "v1")


@pytest.mark.proves("faults.orphan")
def test_a_broker_leaves_no_process_behind(tmp_path: Path, current: Path) -> None:
    with node_of(tmp_path, current) as other:
        last = pythons(other.pid)
        assert len(last) == 1
        alter_broker_config(other, {GENERATION: "2"})
        eventually(lambda: len(now := pythons(other.pid)) == 1 and now != last)
        last = pythons(other.pid)
        os.kill(other.pid, signal.SIGKILL)  # the broker without its child
        eventually(lambda: not command(last[0]))
        other.kill()
        start = other.log.end()
        other.start()
        # This node's controller may serve before Kafka applies the stored properties to the broker. Then the stored
        # generation counts as new, a second Python replaces the first one, and a change that arrives meanwhile must be
        # sent again.
        eventually(lambda: [alter_broker_config(other, {PREFIX + "static.produce": "5M"})], 120)
        other.wait_for_log("reconfigured", start=start)
        last = eventually(lambda: now if len(now := pythons(other.pid)) == 1 else None)
        assert other.stop() == 143
        assert (other.data_dirs[0] / ".kafka_cleanshutdown").exists()
        assert not command(last[0])
        assert "did not end" not in other.log_text()
