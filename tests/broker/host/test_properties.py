"""Wrong properties end a starting broker with one error that names property, value and remedy.

Each start takes seconds, so each way by which an error reaches Kafka has one test. Tests without a broker check the
texts of all other errors. Properties that Kafka has stored are in force after a restart of the broker, even if a plugin
refuses its own, and also after a restart of the host in the same broker.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from harness.java.helper import HelperError
from harness.kafka.admin import alter_broker_config, create_topic
from harness.kafka.node import KafkaNode, StartFailed
from harness.plugin import IN_CHILD, PREFIX
from harness.system.ports import free_port
from harness.system.waiting import eventually
from tests.broker.support.commands import quotahost
from tests.broker.support.node import PLUGINS, callback_node
from tests.broker.support.seen import OPEN, PAUSE, gauge, scrape, state
from tests.fakes.packages import distribute, plant

# ---- the start ----


def start_fails(directory: Path, settings: dict[str, str]) -> StartFailed:
    with pytest.raises(StartFailed) as failed:
        callback_node(directory, settings, env={"PYTHONPATH": str(PLUGINS)}).start()
    return failed.value


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"static.prodcue": "1M"}, ["client.quota.callback.static.prodcue", "static.produce"]),
        ({"static.produce": "fast"}, ["client.quota.callback.static.produce", "fast", "10M"]),
        ({"supplier": "ends-itself"}, ["ends-itself", "SystemExit"]),
        pytest.param(
            {"supplier": "hangs-when-built"},
            ["python.start.seconds", "in hangs_when_built"],  # Python's stack
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"supplier": "takes-a-signal"},
            ["ValueError: signal only works in main thread"],
            marks=pytest.mark.skipif(IN_CHILD, reason="in a child process Python may handle signals"),
        ),
        ({"python.executable": "/no/such/python"}, ["python.executable=/no/such/python", "full path"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.proves("faults.unfit-start")
def test_a_wrong_property_is_named_with_its_remedy(tmp_path: Path, settings: dict[str, str], words: list[str]) -> None:
    failed = start_fails(tmp_path, settings | {"kafka.sasl.password": "hunter2"})
    assert failed.exit_code == 1
    (_,) = {line.partition("ConfigException")[2] for line in failed.log.splitlines() if "ConfigException" in line}
    assert [word for word in words if word not in failed.log] == []
    assert "hunter2" not in failed.log


@pytest.mark.proves("faults.unfit-start")
def test_the_last_line_names_the_plugin_that_ends_the_process(tmp_path: Path) -> None:
    log = start_fails(tmp_path, {"supplier": "ends-the-process"}).log
    *_, imported, built = [line for line in log.splitlines() if "(quotahost." in line]
    assert "supplier 'ends-the-process' is being imported: outsider:ends_the_process of outsider 1.0" in imported
    assert "supplier 'ends-the-process' is being built (quotahost.plugins)" in built


@pytest.mark.proves("faults.planted")
def test_nothing_in_the_working_directory_runs_in_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    # An empty part of PYTHONPATH is the working directory, as in PYTHONPATH=$PYTHONPATH:/opt/plugins. The handler of
    # PYTHONFAULTHANDLER would take HotSpot's signals.
    env = {"PYTHONPATH": f"{os.pathsep}{PLUGINS}", "PYTHONFAULTHANDLER": "1", "ROLES": str(tmp_path), "LC_ALL": "C"}
    (tmp_path / "supplier").write_text("größer", "utf-8")  # the plugin reads it as `python3 -I` would in that locale
    with callback_node(tmp_path / "node", {"supplier": "outsider"}, env=env) as node:
        assert gauge(node, "Plugin,name=outsider", "Errors") == 0, "the plugin is found through PYTHONPATH anyway"
        node.stop()
    assert ran() == []


# ---- what Kafka has stored ----

TOPIC = "t"
MEGABYTE = 1 << 20
GUEST = """
    class Guest:
        def __init__(self, context): pass
        def quota(self, client, quota_type): return None
"""


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the files that the plugins read, and of the supplier ``guest`` in a folder of its own."""
    made = tmp_path_factory.mktemp("stored")
    distribute(made / "guest", "guest", {"quotahost.suppliers": {"guest": "guest:Guest"}}, {"guest": GUEST})
    return made


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[KafkaNode]:
    env = {"PYTHONPATH": f"{PLUGINS}{os.pathsep}{directory / 'guest'}", "ROLES": str(directory)}
    settings = {"supplier": "outsider", "metrics.port": str(free_port())}
    with callback_node(directory / "node", settings, env=env) as node:
        create_topic(node, TOPIC)
        yield node


@pytest.fixture
def guest_removed(directory: Path) -> Iterator[Callable[[bool], None]]:
    """A function that removes the supplier ``guest`` or restores it, as pip would."""

    def remove(removed: bool) -> None:
        here, away = directory / "guest", directory / "away"
        if away.exists() != removed:
            (here if removed else away).rename(away if removed else here)

    yield remove
    remove(False)


def accepts(node: KafkaNode, size: int) -> bool:
    """Whether the broker appends a record of this many bytes, which its ``message.max.bytes`` decides."""
    producer = Producer(node.client_config() | {"message.max.bytes": 20 * MEGABYTE})
    accepted: list[bool] = []
    # If a KafkaError is compared with None by ==, it leaves an exception behind, and any later call raises it.
    producer.produce(TOPIC, os.urandom(size), on_delivery=lambda error, _: accepted.append(error is None))
    assert producer.flush(60) == 0
    return accepted == [True]


def restart(node: KafkaNode) -> int:
    """Restarts the node; returns the position in its log where the new start begins."""
    assert node.stop() == 143
    begin = node.log.end()
    node.start()
    return begin


def store(node: KafkaNode, megabytes: int, **settings: str | None) -> None:
    """Changes ``message.max.bytes`` and settings of quotahost in one request; waits until the first is in force."""
    change = {PREFIX + name: text for name, text in settings.items()}
    alter_broker_config(node, {**change, "message.max.bytes": str(megabytes * MEGABYTE)})
    holds(node, megabytes)


def holds(node: KafkaNode, megabytes: int) -> None:
    size = megabytes * MEGABYTE - 10_000
    eventually(lambda: accepts(node, size), what=f"message.max.bytes of {megabytes} MiB is in force")


def end_host(node: KafkaNode, directory: Path) -> int:
    """Makes the Python host end by itself; returns the end of the log before that."""
    begin = node.log.end()
    (directory / "supplier").write_text("end-host")
    node.wait_for_log("The Python host ended; it starts again", start=begin)
    return begin


def refused(node: KafkaNode) -> bool:
    return gauge(node, "Host", "ConfigRefused") == 1


def unset(node: KafkaNode, *settings: str) -> None:
    """Deletes these settings of quotahost in one request, and waits until no setting is refused any more."""
    alter_broker_config(node, dict.fromkeys(PREFIX + name for name in settings))
    eventually(lambda: not refused(node))


@pytest.mark.proves("faults.stored-property")
def test_a_misspelt_name_that_kafka_has_stored_costs_no_other_property(node: KafkaNode) -> None:
    alter_broker_config(node, {PREFIX + "static.produce": "20M"})
    # Kafka doesn't ask the callback about names that the callback doesn't list as reconfigurable.
    store(node, 2, **{"static.prodcue": "1M"})
    begin = restart(node)
    holds(node, 2)
    node.wait_for_log("static.prodcue: unknown property; did you mean .*static.produce", start=begin)
    eventually(lambda: refused(node))
    shown = "quotahost_config_refused", 1.0
    eventually(lambda: shown in [(each.name, each.value) for each in scrape(node)], what="the endpoint has the metric")
    found = quotahost("doctor", node.directory / "server.properties", "--against", node.bootstrap).output
    assert f"stored a property that has no effect: {PREFIX}static.prodcue" in " ".join(found.split())
    store(node, 3)
    alter_broker_config(node, {PREFIX + "static.produce": "30M"})
    unset(node, "static.prodcue", "static.produce")
    assert node.log_text(begin).count("static.prodcue: unknown property") == 1


@pytest.mark.long
def test_names_without_effect_that_are_stored_alone_are_named_after_the_start(node: KafkaNode) -> None:
    alter_broker_config(node, {PREFIX + "static.fecth": "1M", PREFIX + "kafka.socket.timeout.ms": "1000"})
    begin = restart(node)
    node.wait_for_log("static.fecth: unknown property; did you mean .*static.fetch", start=begin)
    node.wait_for_log("kafka.socket.timeout.ms: can't change while the broker runs", start=begin)
    unset(node, "static.fecth", "kafka.socket.timeout.ms")


@pytest.mark.proves("faults.stored-property")
def test_what_is_not_live_is_refused_by_name_and_stored_unasked_costs_no_other_property(node: KafkaNode) -> None:
    for name, text in {"clients.max": "777", "python.executable": "/nowhere", "topics.prefix": "other-"}.items():
        with pytest.raises(HelperError, match=f"{name}: can't change while the broker runs"):
            alter_broker_config(node, {PREFIX + name: text, PREFIX + "static.scope": "user"})
    port = node.properties[PREFIX + "metrics.port"]
    alter_broker_config(node, {PREFIX + "clients.max": None, PREFIX + "metrics.port": port})
    assert gauge(node, "QuotaTable", "ClientsMax") == 50_000
    assert not refused(node)
    begin = node.log.end()
    # The callback lists only the names kafka.* in server.properties, so Kafka does not ask about this one.
    alter_broker_config(node, {PREFIX + "kafka.bootstrap.servers": "127.0.0.1:1"})
    store(node, 3, **{"static.fetch": "20M"})
    node.wait_for_log("a property has no effect.*kafka.bootstrap.servers: can't change while", start=begin)
    eventually(lambda: refused(node))
    unset(node, "kafka.bootstrap.servers", "static.fetch")


@pytest.mark.proves("faults.stored-property")
def test_a_supplier_that_was_removed_costs_no_other_property(
    node: KafkaNode, directory: Path, guest_removed: Callable[[bool], None]
) -> None:
    store(node, 4, supplier="outsider,guest")
    guest_removed(True)
    begin = restart(node)
    holds(node, 4)
    node.wait_for_log("ERROR the new properties are rejected; the old ones stay.*supplier 'guest'", start=begin)
    eventually(lambda: refused(node))
    store(node, 5)
    end_host(node, directory)
    eventually(lambda: node.log_text(begin).count("serves with suppliers outsider") == 2)
    eventually(lambda: refused(node))
    with pytest.raises(HelperError, match=rf"'guest': no such plugin is installed; .*remove it from {PREFIX}supplier "):
        alter_broker_config(node, {PREFIX + "static.produce": "20M"})
    alter_broker_config(node, {PREFIX + "static.produce": "20M", PREFIX + "supplier": None})  # one request does both
    eventually(lambda: not refused(node))
    alter_broker_config(node, {PREFIX + "static.produce": None})
    assert node.log_text(begin).count("the new properties are rejected") == 1


def test_a_supplier_that_is_slow_costs_no_other_property(node: KafkaNode, directory: Path) -> None:
    store(node, 6, **{"static.fetch": "30M"})
    (directory / "supplier").write_text("slow-tick")
    restart(node)
    holds(node, 6)
    store(node, 7)
    (directory / "supplier").write_text("")
    # The broker refuses a change of quotahost's own properties until the host has time for the change.
    eventually(lambda: alter_broker_config(node, {PREFIX + "static.fetch": None}) is None)


def test_an_administrator_hears_that_a_plugin_can_not_be_built(node: KafkaNode) -> None:
    start, token = node.log.end(), PREFIX + "plugin.mine.token"
    with pytest.raises(HelperError, match=r"'roleless'.*has no method quota"):
        alter_broker_config(node, {PREFIX + "supplier": "roleless", token: "S3CR3T"})
    node.wait_for_log("'roleless'.*has no method quota", start=start)
    assert "S3CR3T" not in node.log_text(start), "Kafka's own log lines don't show the other values of the change"
    store(node, 8)
    assert not refused(node)


@pytest.mark.proves("faults.host-restart")
def test_a_host_that_can_not_start_again_says_why_and_does_so_once_it_can(
    node: KafkaNode, directory: Path, guest_removed: Callable[[bool], None]
) -> None:
    begin = node.log.end()
    alter_broker_config(node, {PREFIX + "supplier": "outsider,guest"})
    node.wait_for_log("reconfigured", start=begin)
    guest_removed(True)
    end_host(node, directory)
    node.wait_for_log("The Python host ended; it starts again in 1000 ms. supplier 'guest': no such", start=begin)
    guest_removed(False)
    node.wait_for_log("serves with suppliers outsider, guest", start=begin)


@pytest.mark.proves("faults.host-restart")
def test_a_pause_ends_with_a_host_that_starts_again_and_knows_no_reason(node: KafkaNode, directory: Path) -> None:
    (directory / "consumed").write_text("1000")
    alter_broker_config(node, {PREFIX + "factor.source": "outsider", PREFIX + "policy": "outsider"})
    eventually(lambda: state(node) == PAUSE)
    end_host(node, directory)
    (directory / "consumed").write_text("0")
    eventually(lambda: state(node) == OPEN)
