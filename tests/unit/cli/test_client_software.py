"""What doctor says of the software of connected clients, by the gauges of the brokers of this machine."""

from __future__ import annotations

from pathlib import Path

from quotahost.cli.console import Level
from quotahost.cli.doctor.doctor import check_client_software
from tests.fakes.admin_socket import FakeAdminSocket


def impatient(software: str, connections: float) -> list[str]:
    return ["ImpatientClients", software, "Connections", str(connections)]


def test_libraries_that_give_up_early_are_named_with_their_connections(broker: FakeAdminSocket) -> None:
    broker.answers["gauges"] = [impatient("sarama", 3.0), impatient("unknown", 0.0), ["Fence", "", "Closed", "0.0"]]
    (finding,) = check_client_software()
    assert finding.level is Level.WEAK
    assert finding.text.startswith("3 connections use sarama")
    assert "docs/clients.md" in finding.remedy


def test_where_no_such_client_is_connected_all_is_well(broker: FakeAdminSocket) -> None:
    broker.answers["gauges"] = [impatient("sarama", 0.0), impatient("unknown", 0.0)]
    assert [finding.level for finding in check_client_software()] == [Level.GOOD]


def test_a_broker_that_does_not_answer_is_named(broker: FakeAdminSocket) -> None:
    del broker.answers["gauges"]
    first, *_ = check_client_software()
    assert first.level is Level.NOTE
    assert "broker 1" in first.text


def test_without_a_broker_on_this_machine_nothing_is_known(directory: Path) -> None:
    (finding,) = check_client_software()
    assert finding.level is Level.NOTE
