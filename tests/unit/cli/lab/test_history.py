"""What the commands that read the pipeline's history see before they start Spark."""

from pathlib import Path

import pytest
from py4j.protocol import Py4JError

from quotahost.base.errors import QuotahostError
from quotahost.cli.lab import history
from quotahost.cli.quotas import usage
from tests.unit.cli.commands import run

#: What each reads by Spark, and what it says of a folder that is not there.
COMMANDS = {
    "replay {0} FILE": ((history, "everything"), " doesn't exist; run `quotahost pipeline` with --history DIR, and"),
    "report --history {0} --out OUT.html": ((history, "worst"), " doesn't exist; run `quotahost pipeline`"),
    "quotas usage FILE --history {0}": ((usage, "bill"), "-budgets doesn't exist; run `quotahost pipeline`"),
}


def words_of(command: str, place: object, folder: Path) -> list[str]:
    (folder / "file").write_text("quotas: []" if "usage" in command else "")
    return command.format(place).replace("FILE", f"{folder}/file").replace("OUT", f"{folder}/out").split()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["absent", "file:absent", "file://absent", "s3a://bucket/absent", "there"])
def test_a_folder_that_is_not_there_is_told_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, place: str
) -> None:
    for name in ("there", "there-bytes"):
        (tmp_path / name).mkdir()

    def started(*_: object, **__: object) -> None:
        raise QuotahostError("Spark didn't start")

    monkeypatch.setattr(history, "session", started)
    given = place.replace("absent", f"{tmp_path}/absent").replace("there", f"{tmp_path}/there")
    words = words_of(command, given, tmp_path)
    done = run(*words)
    told = f"{given}{COMMANDS[command][1]}" if "absent" in place and "s3a" not in place else "Spark didn't start"
    assert (done.exit_code, told in done.stderr) == (1, True), done.stderr
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))  # by which a path may lie elsewhere
    assert ("Spark didn't start" in run(*words).stderr) is not place.startswith("file:")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_spark_can_not_read_is_named_without_javas_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise Py4JError("[FAILED_READ_FILE] day=2026-11-21/part-0.parquet\n\tat org.apache.spark.Executor")

    monkeypatch.setattr(history, "session", lambda *_, **__: None)
    monkeypatch.setattr(history, "_may_be_there", lambda _: True)
    monkeypatch.setattr(*COMMANDS[command][0], damaged)
    told = run(*words_of(command, tmp_path, tmp_path))
    assert (told.exit_code, "day=2026-11-21/part-0.parquet\n  -> move" in told.stderr) == (2, True), told.stderr
    assert "\tat org" not in told.stderr
