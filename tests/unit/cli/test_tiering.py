"""doctor names the principal of tiered storage's client if a quota may slow that client down."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from quotahost.cli.doctor.settings import check_weaknesses
from quotahost.cli.property_files import read_broker_file
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

ON: Final = "remote.log.storage.system.enable=true"
LISTENER: Final = "remote.log.metadata.manager.listener.name=B"
CLIENT: Final = "rlmm.config.remote.log.metadata.common.client."
SECRET: Final = "hunter2"
SECURED: Final = (
    ON,
    LISTENER,
    "listener.security.protocol.map=B:SASL_PLAINTEXT,OPEN:PLAINTEXT,TLS:SSL",
    "inter.broker.listener.name=B",
    "sasl.mechanism.inter.broker.protocol=PLAIN",
    f'listener.name.b.plain.sasl.jaas.config=PlainLoginModule required username="broker" password="{SECRET}";',
)


def login(user: str, prefix: str = CLIENT) -> list[str]:
    jaas = f'PlainLoginModule required password="{SECRET} username=x" username="{user}";'
    return [f"{prefix}sasl.mechanism=PLAIN", f"{prefix}sasl.jaas.config={jaas}"]


def found(tmp_path: Path, *lines: str) -> list[tuple[str, str]]:
    path = tmp_path / "server.properties"
    path.write_text("\n".join(lines))
    file = read_broker_file(path)
    weak = check_weaknesses(Settings.from_properties(file.properties), file)
    findings = [(each.text, each.remedy) for each in weak if "__remote_log_metadata" in each.text]
    assert SECRET not in str(findings)
    return findings


def test_without_tiered_storage_or_with_anonymous_brokers_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert found(tmp_path, *SECURED[1:], *login("tiering")) == []
    assert found(tmp_path, ON) == []
    assert found(tmp_path, ON, "remote.log.metadata.manager.listener.name=PLAINTEXT") == []


@pytest.mark.parametrize("prefix", [CLIENT, "rlmm.config.remote.log.metadata.producer."])
def test_a_client_that_logs_in_as_somebody_else_is_named(tmp_path: Path, prefix: str) -> None:
    ((text, remedy),) = found(tmp_path, *SECURED, *login("tiering", prefix))
    assert "logs in as tiering, which is not exempt" in text
    assert remedy == f"add User:tiering to {PREFIX}static.excluded.principal.name.list"


def test_the_prefix_of_its_properties_may_be_another(tmp_path: Path) -> None:
    other = "remote.log.metadata.manager.impl.prefix=mine."
    ((text, _),) = found(tmp_path, *SECURED, other, *login("tiering", "mine.remote.log.metadata.common.client."))
    assert "logs in as tiering" in text


def test_the_brokers_own_user_and_a_listed_one_are_exempt(tmp_path: Path) -> None:
    assert found(tmp_path, *SECURED, *login("broker")) == []
    quoted = [line.replace("username=", '"username" =') for line in login("broker")]
    assert found(tmp_path, *SECURED, *quoted) == []
    listed = f"{PREFIX}static.excluded.principal.name.list=User:tiering"
    assert found(tmp_path, *SECURED, listed, *login("tiering")) == []


def test_a_kerberos_principal_is_shortened(tmp_path: Path) -> None:
    kerberos = f'{CLIENT}sasl.jaas.config=Krb5LoginModule required principal="tiering/host@REALM";'
    ((text, _),) = found(tmp_path, *SECURED, kerberos)
    assert "logs in as tiering, which" in text


@pytest.mark.parametrize(
    "lines", [[], [f"{CLIENT}security.protocol=SSL", "ssl.client.auth=required"]], ids=["no-jaas", "certificate"]
)
def test_a_principal_that_the_file_does_not_name_is_said_to_be_unknown(tmp_path: Path, lines: list[str]) -> None:
    at = "remote.log.metadata.manager.listener.name=TLS" if lines else LISTENER
    ((text, _),) = found(tmp_path, *SECURED, at, *lines)
    assert "can't be found in this file" in text


@pytest.mark.parametrize("listener", ["OPEN", "TLS", ""])
def test_a_client_without_authentication_among_brokers_that_authenticate_is_weak(tmp_path: Path, listener: str) -> None:
    ((text, _),) = found(tmp_path, *SECURED, f"remote.log.metadata.manager.listener.name={listener}")
    assert "connects as ANONYMOUS, while brokers authenticate" in text
