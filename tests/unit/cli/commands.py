"""Helpers that write a command's input files, and run the command in this process."""

import zipfile
from collections.abc import Iterable
from pathlib import Path

from typer.testing import CliRunner, Result

from quotahost.cli.main import app
from quotahost.cli.property_files import BrokerFile, read_broker_file
from quotahost.settings.declaration import PREFIX

CLASS = f"{PREFIX}class=org.quotahost.PythonQuotaCallback\n"


def write_jar(path: Path, quotahost: str = "0.1.0", jpype: str = "1.7.1") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        versions = f"# built\nquotahost={quotahost}\njpype={jpype}\n"
        archive.writestr("META-INF/quotahost/versions.properties", versions)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def told(code: int, words: Iterable[str], *arguments: object) -> str:
    """The output of a command, which must end with this code and print these words."""
    result = run(*arguments)
    assert (result.exit_code, [each for each in words if each not in result.output]) == (code, []), result.output
    return result.output


def properties_file(tmp_path: Path, properties: str) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(properties)
    return path


def broker_file(tmp_path: Path, *lines: str) -> BrokerFile:
    """A broker's file; a dot at the beginning of a line stands for the common prefix."""
    text = "\n".join(PREFIX + line[1:] if line.startswith(".") else line for line in lines)
    return read_broker_file(properties_file(tmp_path, text))
