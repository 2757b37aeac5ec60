"""The broker's properties file, and the listeners in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quotahost.kafka.listeners import Listeners
from quotahost.settings.declaration import PREFIX
from tests.unit.cli.commands import CLASS, broker, doctor


def test_properties_are_read_as_java_reads_them(tmp_path: Path) -> None:
    file = broker(
        tmp_path,
        "# comment\n! comment\n  a = 1 \nb:2\nc\\ d=3\ne=one,\\\n    two\nf=\\u00fc\\t\ng=\xfc\nempty\na=last\n",
    )
    assert file.properties == {"a": "last", "b": "2", "c d": "3", "e": "one,two", "f": "ü\t", "g": "ü", "empty": ""}


def test_values_of_config_providers_are_left_to_the_broker(site: Path, package: Path, tmp_path: Path) -> None:
    provided = f"{PREFIX}static.produce=${{file:/etc/rates:produce}}\n"
    result = doctor(tmp_path, f"{CLASS}config.providers=file\n{provided}")
    assert result.exit_code == 0, result.output
    assert f"{PREFIX}static.produce is not checked: a config provider" in result.output
    assert doctor(tmp_path, CLASS + provided).exit_code == 1


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("", ["PLAINTEXT"]),
        ("listeners=SASL_SSL://:9092,SASL_PLAINTEXT://:9093", []),
        ("listeners=SSL://:9092", ["SSL"]),
        ("listeners=SSL://:9092\nssl.client.auth=required", []),
        ("listeners=A://:1,B://:2\nlistener.security.protocol.map=A:SSL,B:SSL\n"
         "ssl.client.auth=required\nlistener.name.b.ssl.client.auth=requested", ["B"]),
        ("listeners=IN://:1,CTL://:2\nlistener.security.protocol.map=IN:SASL_SSL,CTL:PLAINTEXT\n"
         "controller.listener.names=CTL", []),
    ],
)  # fmt: skip
def test_listeners_on_which_everybody_is_anonymous(tmp_path: Path, properties: str, expected: list[str]) -> None:
    assert Listeners(broker(tmp_path, properties).properties).unauthenticated() == expected
