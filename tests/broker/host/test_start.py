"""A wrong configuration stops the broker at its start, with one error that names property, value and remedy.

Each start takes seconds. So there is one for each way by which an error comes to Kafka; tests without a broker hold the
words of all others.
"""

import os
import stat
from pathlib import Path

import pytest

from harness.kafka.node import StartFailed
from harness.plugin import IN_CHILD
from tests.broker.support.node import PLUGINS, callback_node
from tests.broker.support.seen import gauge
from tests.fakes.packages import plant


def start_error(directory: Path, settings: dict[str, str]) -> str:
    env = {"PYTHONPATH": str(PLUGINS), "FAULT": "/dev/null"}
    with pytest.raises(StartFailed) as failed:
        callback_node(directory, settings, env=env).start()
    assert failed.value.exit_code == 1
    lines = [line for line in failed.value.log.splitlines() if "ConfigException" in line]
    assert lines
    assert len({line.partition("ConfigException")[2] for line in lines}) == 1, "more than one error"
    return failed.value.log


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
    log = start_error(tmp_path, settings | {"kafka.sasl.password": "hunter2"})
    for word in expected_words:
        assert word in log
    assert "hunter2" not in log


@pytest.mark.proves("faults.unfit-start")
def test_the_last_line_names_the_plugin_that_ends_the_process(tmp_path: Path) -> None:
    env = {"PYTHONPATH": str(PLUGINS), "FAULT": "/dev/null"}
    with pytest.raises(StartFailed) as failed:
        callback_node(tmp_path, {"supplier": "ends-the-process"}, env=env).start()
    lines = [line for line in failed.value.log.splitlines() if "(quotahost." in line]
    assert "supplier 'ends-the-process' is being imported: faulty:ends_the_process of faulty 1.0" in lines[-2]
    assert "supplier 'ends-the-process' is being built (quotahost.plugins)" in lines[-1]


@pytest.mark.skipif(IN_CHILD, reason="a process of its own needs no libpython")
@pytest.mark.proves("faults.unfit-start")
def test_a_broker_does_not_start_with_an_unfit_interpreter(tmp_path: Path) -> None:
    told = "version=3.11.4\nproblem=no shared libpython found\tname another"  # as probe.py says it
    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{told}\nEND\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    words = f"python.executable={python}: no shared libpython found; name another"
    assert words in start_error(tmp_path / "node", {"python.executable": str(python)})


@pytest.mark.proves("faults.planted")
def test_nothing_in_the_working_directory_runs_in_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = plant(tmp_path / "cwd")
    monkeypatch.chdir(tmp_path / "cwd")
    (tmp_path / "factor").write_text("1")
    # An empty part is the working directory, as in PYTHONPATH=$PYTHONPATH:/opt/plugins. The other one's handler would
    # take HotSpot's signals.
    env = {"PYTHONPATH": f"{os.pathsep}{PLUGINS}", "PYTHONFAULTHANDLER": "1", "FAULT": "/dev/null"}

    with callback_node(tmp_path / "node", {"supplier": "faulty"}, env=env) as node:
        assert gauge(node, "Plugin,name=faulty", "Errors") == 0, "PYTHONPATH has the plugin all the same"
        node.stop()

    assert ran() == []
