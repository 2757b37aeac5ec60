"""The host's log and ``doctor`` say what each of Strimzi's names means here."""

import logging
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quotahost.broker.host.loop import Host
from quotahost.cli.main import app
from quotahost.settings.broker import live_properties
from quotahost.settings.declaration import PREFIX
from quotahost.settings.strimzi import PROPERTIES, Translation, table, translate
from tests.fakes.shim import FakeShim
from tests.unit.settings.strimzi.files import (
    ADMIN,
    BOOTSTRAP,
    BYTES,
    FALLBACK,
    INTERVAL,
    RATIO,
    SECRET,
    VALIDITY,
    full,
    notes,
    read,
)


def test_the_host_logs_each_note_once_and_again_only_when_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    shim = FakeShim(given={"static.produce": "1000", INTERVAL: "60", VALIDITY: "PT5M", **BOOTSTRAP})
    shim.reconfigure(**{VALIDITY: "PT6M"})
    shim.idle()
    with caplog.at_level(logging.INFO):
        Host(shim).run()
    logged = caplog.text
    assert shim.refused is None
    assert logged.count(f"{VALIDITY}=PT5M read as validity=PT5M") == 1
    assert logged.count(f"{VALIDITY}=PT6M read as validity=PT6M") == 1
    assert logged.count("static.produce=1000 is the produce rate of the supplier static") == 1
    assert logged.count(f"{ADMIN}* (bootstrap.servers) is the Kafka client") == 1
    assert shim.configured is not None
    assert shim.configured.validity == timedelta(minutes=6)


def test_a_start_and_each_live_change_translate_once(monkeypatch: pytest.MonkeyPatch) -> None:
    translated: list[str] = []

    def counted(properties: Mapping[str, str]) -> Translation:
        translated.append(properties[PREFIX + VALIDITY])
        return translate(properties)

    monkeypatch.setattr("quotahost.settings.broker.translate", counted)
    shim = FakeShim(given={VALIDITY: "PT5M"})
    shim.reconfigure(**{VALIDITY: "PT6M"})
    shim.idle()
    Host(shim).run()
    assert translated == ["PT5M", "PT6M"]


def test_a_live_change_to_a_wrong_value_is_refused_by_their_name() -> None:
    shim = FakeShim(given={VALIDITY: "PT5M", **BOOTSTRAP})
    shim.validate("1", **{VALIDITY: "soon"})
    shim.validate("2", **{VALIDITY: "PT1M"})
    Host(shim).run()
    assert f"{VALIDITY}=soon" in (shim.verdicts["1"] or "")
    assert shim.verdicts["2"] is None
    assert PREFIX + VALIDITY in shim.live
    assert PREFIX + BYTES in shim.live
    assert f"{PREFIX}static.kafka.clientIdPrefix" not in shim.live


def test_the_note_of_a_rate_names_our_scope() -> None:
    (note, _) = notes({"static.produce": "1000", "static.scope": "user", **BOOTSTRAP})
    assert note.endswith("for each user (static.scope)")


def test_doctor_shows_what_each_means_here_and_where_ours_come_from(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    lines = {"class": "org.quotahost.PythonQuotaCallback", INTERVAL: "60", BYTES: "1", FALLBACK: "0.5"}
    lines[f"{ADMIN}ssl.truststore.password"] = SECRET
    path.write_text("".join(f"{name}={text}\n" for name, text in full(lines).items()))
    output = CliRunner().invoke(app, ["doctor", str(path), "--here"]).output
    assert f"--    {INTERVAL}=60 read as plugin.log-dirs.interval=60s" in output
    assert f"weak  {FALLBACK}=0.5 read as fallback.action=PAUSE" in output
    row = next(line for line in output.splitlines() if line.startswith(f"{PREFIX}fallback.action"))
    assert row.split()[-1] == PREFIX + FALLBACK
    assert SECRET not in output
    row = next(line for line in output.splitlines() if line.startswith(f"{PREFIX}{ADMIN}ssl"))
    assert row.split()[1] == "***"


def test_a_value_that_would_break_the_log_line_is_escaped() -> None:
    file = {"static.produce": "1\nERROR forged", f"{ADMIN}x\nERROR forged": "1", **BOOTSTRAP}
    assert not any("\n" in note for note in notes(file))


def test_the_table_has_every_name_of_theirs_once() -> None:
    lines = table().splitlines()[2:]
    assert [line.split("`")[1] for line in lines] == [line.name for line in PROPERTIES]
    assert {INTERVAL, BYTES, RATIO, FALLBACK, VALIDITY, f"{ADMIN}*"} <= {line.name for line in PROPERTIES}
    assert {row.removeprefix(PREFIX) for row in live_properties(read({}))} >= {INTERVAL, BYTES, RATIO}
