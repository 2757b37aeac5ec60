"""A wrong configuration stops the broker at its start, with one error that names property, value and remedy.

Each start takes seconds. So ``make test`` starts one broker for each way by which an error comes to Kafka; the other
cases, whose words tests without a broker hold, are ``long``.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from harness.kafka.node import StartFailed
from harness.plugin import IN_CHILD
from tests.broker.support.node import PLUGINS, callback_node, gauge
from tests.fakes.packages import plant

pytestmark = pytest.mark.broker
IN_THE_BROKER = pytest.mark.skipif(IN_CHILD, reason="a process of its own needs no libpython and no JPype")


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
        pytest.param({"validity": "60"}, ["client.quota.callback.validity", "60", "s"], marks=pytest.mark.long),
        pytest.param({"supplier": "statik"}, ["statik", "static"], marks=pytest.mark.long),
        pytest.param({"supplier": "unimportable"}, ["unimportable", "no_such_module_anywhere"], marks=pytest.mark.long),
        pytest.param({"supplier": "roleless"}, ["roleless", "quota"], marks=pytest.mark.long),
        ({"supplier": "ends-itself"}, ["ends-itself", "SystemExit"]),
        pytest.param({"plugin.fixed.factor": "0.5"}, ["plugin.fixed"], marks=pytest.mark.long),
        pytest.param(
            {"topics.prefix": "a b"},
            ["client.quota.callback.topics.prefix=a b", "can't begin a topic's name"],
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"factor.source": "fixed", "plugin.fixed.factor": "2"}, ["plugin.fixed.factor", "2"], marks=pytest.mark.long
        ),
        pytest.param({"supplier": "hangs-when-built"}, ["python.start.seconds"], marks=pytest.mark.long),
        ({"python.executable": "/no/such/python"}, ["python.executable=/no/such/python", "full path"]),
        pytest.param(
            {"python.executable": "/bin/true"}, ["python.executable=/bin/true", "no Python"], marks=pytest.mark.long
        ),
    ],
    ids=lambda value: next(iter(value.items()))[0] if isinstance(value, dict) else "",
)
@pytest.mark.proves("faults.unfit-start")
def test_a_wrong_property_is_named_with_its_remedy(
    tmp_path: Path, settings: dict[str, str], expected_words: list[str]
) -> None:
    log = start_error(tmp_path, settings)
    for word in expected_words:
        assert word in log


@pytest.mark.parametrize(
    ("lines", "expected_words"),
    [
        pytest.param(
            "version=3.11.4\nquotahost={v}\njpype=1.7.1\nlibpython=\nexecutable=x",
            "no shared libpython",
            marks=IN_THE_BROKER,
        ),
        pytest.param(
            "version=3.11.4\nquotahost={v}\njpype=1.6.0\nlibpython=/x\nexecutable=x",
            "jpype 1.6.0, this jar needs 1.7.1",
            marks=[pytest.mark.long, IN_THE_BROKER],
        ),
        pytest.param(
            "version=3.11.4\nquotahost=\njpype=1.7.1\nlibpython=/x\nexecutable=x",
            "quotahost is not installed there",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "version=3.9.1\nquotahost=\njpype=\nlibpython=/x\nexecutable=x", "3.11 or newer", marks=pytest.mark.long
        ),
        pytest.param("version=3.13.0\nfree-threaded=true\nexecutable=x", "free-threaded", marks=pytest.mark.long),
    ],
    ids=["no-libpython", "other-jpype", "no-quotahost", "old", "free-threaded"],
)
@pytest.mark.proves("faults.unfit-start")
def test_a_broker_does_not_start_with_an_unfit_interpreter(tmp_path: Path, lines: str, expected_words: str) -> None:
    from importlib.metadata import version

    python = tmp_path / "python3"
    python.write_text(f"#!/bin/sh\ncat <<'END'\n{lines.format(v=version('quotahost'))}\nEND\n")
    python.chmod(python.stat().st_mode | stat.S_IXUSR)
    assert expected_words in start_error(tmp_path / "node", {"python.executable": str(python)})


@pytest.mark.proves("faults.unfit-start")
def test_a_wrong_value_is_named_with_a_right_one_and_no_secret_beside_it(tmp_path: Path) -> None:
    log = start_error(tmp_path, {"kafka.sasl.password": "hunter2", "static.produce": "fast"})
    assert all(word in log for word in ("client.quota.callback.static.produce", "fast", "10M"))
    assert "hunter2" not in log


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
