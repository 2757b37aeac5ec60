"""A controller that is no broker: which plugins it has, whose disks it looks at, and what a silent host means there."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from quotahost.api import Role
from quotahost.broker.disks.monitor import NoDisks
from quotahost.broker.host.plugins import NodeRoles
from quotahost.model import ClusterVolumes, State
from quotahost.settings.broker import Settings
from quotahost.settings.declaration import PREFIX

BROKERS: Final = {"static.kafka.admin.bootstrap.servers": "b:9092"}
CONTROLLER: Final = NodeRoles({"process.roles": "controller"})
BROKER: Final = NodeRoles({"process.roles": "broker,controller"})


def settings(source: str, more: dict[str, str] | None = None) -> Settings:
    given = {"factor.source": source, "fallback.action": "PAUSE"} | (more or {})
    return Settings.from_properties({PREFIX + name: value for name, value in given.items()})


@pytest.mark.parametrize("source", ["snapshots", "cluster-volumes"])
def test_it_judges_the_volumes_if_it_knows_where_the_brokers_are(source: str) -> None:
    told = settings(source, BROKERS)
    assert {role for role in Role if CONTROLLER.needs(role, told)} == set(Role) - {Role.TASK}
    assert CONTROLLER.applied(told).fallback_action is State.PAUSE


@pytest.mark.parametrize(("source", "more"), [("snapshots", {}), ("local", BROKERS), ("log-dirs", BROKERS)])
def test_otherwise_it_has_suppliers_alone_and_a_silent_host_is_no_full_disk(source: str, more: dict[str, str]) -> None:
    given = settings(source, more)
    assert [role for role in Role if CONTROLLER.needs(role, given)] == [Role.SUPPLIER]
    assert CONTROLLER.applied(given).fallback_action is State.OPEN
    assert all(BROKER.needs(role, given) for role in Role)
    assert BROKER.applied(given) is given


def test_it_has_no_volume_and_knows_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("cluster.id=c-1\n")
    disks = NoDisks({"log.dirs": str(tmp_path)})
    assert disks.cluster_id == "c-1"
    assert disks.known() == ClusterVolumes(())
    assert disks.known() is disks.known(), "nothing has changed, so the host needs to judge nothing anew"
