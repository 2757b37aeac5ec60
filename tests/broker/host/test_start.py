"""A wrong configuration stops the broker at its start, with one error that names property, value and remedy.

Each start takes seconds. So there is one for each way by which an error comes to Kafka; tests without a broker hold the
words of all others.
"""

import os
from pathlib import Path

import pytest

from harness.kafka.node import StartFailed
from harness.plugin import IN_CHILD
from tests.broker.support.node import PLUGINS, callback_node
from tests.broker.support.seen import gauge
from tests.fakes.packages import plant


def start_fails(directory: Path, settings: dict[str, str]) -> StartFailed:
    with pytest.raises(StartFailed) as failed:
        callback_node(directory, settings, env={"PYTHONPATH": str(PLUGINS)}).start()
    return failed.value


@pytest.mark.parametrize(
    ("settings", "expected_words"),
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
            marks=pytest.mark.skipif(IN_CHILD, reason="the signals of a process of its own are Python's"),
        ),
        ({"python.executable": "/no/such/python"}, ["python.executable=/no/such/python", "full path"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
@pytest.mark.proves("faults.unfit-start")
def test_a_wrong_property_is_named_with_its_remedy(
    tmp_path: Path, settings: dict[str, str], expected_words: list[str]
) -> None:
    failed = start_fails(tmp_path, settings | {"kafka.sasl.password": "hunter2"})
    assert failed.exit_code == 1
    (_,) = {line.partition("ConfigException")[2] for line in failed.log.splitlines() if "ConfigException" in line}
    assert [word for word in expected_words if word not in failed.log] == []
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
    # An empty part is the working directory, as in PYTHONPATH=$PYTHONPATH:/opt/plugins. The other one's handler would
    # take HotSpot's signals.
    env = {"PYTHONPATH": f"{os.pathsep}{PLUGINS}", "PYTHONFAULTHANDLER": "1", "ROLES": str(tmp_path)}
    with callback_node(tmp_path / "node", {"supplier": "outsider"}, env=env) as node:
        assert gauge(node, "Plugin,name=outsider", "Errors") == 0, "PYTHONPATH has the plugin all the same"
        node.stop()
    assert ran() == []
