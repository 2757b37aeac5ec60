"""A Kafka that has a new client inside its brokers fails here, before its client-id is missing among the exempt.

The test reads Kafka's jars. Whoever raises the version of the harness looks up the client-id that the new class uses,
adds it to ``quotahost.broker.host.exemptions.INTERNAL_CLIENT_IDS``, and the class to the list here.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from harness.java.jars import DEFAULT_VERSION, broker_jars
from harness.java.jdk import class_path, tool
from quotahost.broker.host.exemptions import INTERNAL_CLIENT_IDS

pytestmark = pytest.mark.broker

_CLIENT: Final = "org/apache/kafka/clients/NetworkClient"
_THREAD: Final = "org/apache/kafka/server/util/InterBrokerSendThread"
_UTILS: Final = "kafka/server/NetworkUtils"
# What makes a client: the class, and the method that does it.
_MAKERS: Final = {
    (_CLIENT, "<init>"),
    (_THREAD, "<init>"),
    (_UTILS, "buildNetworkClient"),
    ("org/apache/kafka/clients/ClientUtils", "createNetworkClient"),
    ("org/apache/kafka/clients/producer/KafkaProducer", "<init>"),
    ("org/apache/kafka/clients/consumer/KafkaConsumer", "<init>"),
    ("org/apache/kafka/clients/consumer/KafkaShareConsumer", "<init>"),
    ("org/apache/kafka/clients/admin/Admin", "create"),
    ("org/apache/kafka/clients/admin/AdminClient", "create"),
    ("org/apache/kafka/clients/admin/KafkaAdminClient", "createInternal"),
}
# The outer classes that make one, and the client-ids; None if the client comes from another class of this list, or
# runs in a tool and in no broker.
_KNOWN: Final[dict[str, tuple[str, ...] | None]] = {
    "AddPartitionsToTxnManager": None,
    "BrokerBlockingSender": None,  # with the client-id of ReplicaFetcherManager: broker-1-fetcher-0
    "BrokerServer": ("AddPartitionsManager-client-1", "Persister-client-1"),
    "ConfigCommand": None,
    "ConsumerManager": ("__remote_log_metadata_client_1_consumer",),
    "InterBrokerSendThread": None,  # what others extend
    "KafkaNetworkChannel": None,
    "KafkaRaftManager": ("raft-client-1",),
    "NetworkPartitionMetadataClient": ("NetworkPartitionMetadataClient-client-1",),
    "NetworkUtils": None,
    "NodeToControllerChannelManagerImpl": None,  # the plain node id
    "NodeToControllerRequestThread": None,
    "PersisterStateManager": None,
    "ProducerManager": ("__remote_log_metadata_client_1_producer",),
    "TopicBasedRemoteLogMetadataManager": ("__remote_log_metadata_client_1_admin",),
    "TransactionMarkerChannelManager": ("broker-1-txn-marker-sender",),
}


# How javap -c shows a call; without a class in front the method is one of the class itself.
_CALL: Final = re.compile(r"// (?:Interface)?Method (?:([\w/$]+)\.)?\"?(<init>|\w+)\"?:")
_HEAD: Final = re.compile(r"^(?:[a-z]+ )*(?:class|interface) ([\w.$]+)")


@cache
def makers(version: str) -> dict[str, set[tuple[str, str]]]:
    """The classes of Kafka's brokers that make a client, and what each calls; the clients' own jar is left out."""
    jars = [jar for jar in broker_jars(version).glob("kafka*.jar") if not jar.name.startswith("kafka-clients")]
    calls: dict[str, set[tuple[str, str]]] = {}
    name = ""
    for line in _javap(version, *(name for jar in jars for name in _candidates(jar))):
        if head := _HEAD.match(line):
            name = head[1].replace(".", "/")
        elif call := _CALL.search(line):
            calls.setdefault(name, set()).add((call[1] or name, call[2]))
    return {name: called for name, called in calls.items() if called & _MAKERS}


def _candidates(jar: Path) -> Iterator[str]:
    """The classes in whose bytes a maker is named: javap would take minutes for all."""
    wanted = {name.encode() for name, _ in _MAKERS}
    with ZipFile(jar) as archive:
        for file in archive.namelist():
            if file.endswith(".class") and any(name in archive.read(file) for name in wanted):
                yield file.removesuffix(".class").replace("/", ".")


def _javap(version: str, *classes: str) -> list[str]:
    command = [*tool("javap"), "-c", "-p", "-cp", class_path([broker_jars(version)]), *classes]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def _outer(name: str) -> str:
    return name.rpartition("/")[2].partition("$")[0]


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "4.0.1"])
def test_no_class_of_a_broker_makes_a_client_that_is_not_known(version: str) -> None:
    outer = set(map(_outer, makers(version)))
    assert outer - _KNOWN.keys() == set(), "its client-id must be among exemptions.INTERNAL_CLIENT_IDS"
    if version == DEFAULT_VERSION:
        assert _KNOWN.keys() - outer == set(), "these make no client any more"


def is_internal(client_id: str) -> bool:
    """As ``org.quotahost.fence.Exemptions`` takes the forms."""
    return re.fullmatch(INTERNAL_CLIENT_IDS.replace("#", "[0-9]+").replace("*", r"\S+"), client_id) is not None


def test_the_client_ids_of_all_of_them_are_exempt() -> None:
    ids = {client_id for names in _KNOWN.values() for client_id in names or ()}
    assert {each for each in ids if not is_internal(each)} == set()


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "4.0.1"])
def test_every_prefix_that_a_broker_gives_to_its_network_utils_makes_an_exempt_client_id(version: str) -> None:
    callers = [name for name, called in makers(version).items() if (_UTILS, "buildNetworkClient") in called]
    prefixes = {prefix for caller in callers for prefix in _prefixes(version, caller)}
    assert prefixes >= {"AddPartitionsManager", "Persister"}
    assert {each for each in prefixes if not is_internal(f"{each}-client-1")} == set()


def _prefixes(version: str, caller: str) -> Iterator[str]:
    """The first argument of each call of buildNetworkClient: the last plain word that was loaded before it."""
    word = ""
    for line in _javap(version, caller.replace("/", ".")):
        if loaded := re.search(r"ldc(?:_w)? .*// String (\w+)$", line):
            word = loaded[1]
        elif "NetworkUtils.buildNetworkClient:" in line:
            yield word
