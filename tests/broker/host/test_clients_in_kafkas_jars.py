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

from harness.java.class_file import ClassFile, read_class
from harness.java.jars import DEFAULT_VERSION, broker_jars
from harness.java.jdk import class_path, program
from quotahost.broker.host.exemptions import is_internal

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


@cache
def makers(version: str) -> list[ClassFile]:
    """The classes of Kafka's brokers that make a client; the clients' own jar is left out."""
    jars = [jar for jar in broker_jars(version).glob("kafka*.jar") if not jar.name.startswith("kafka-clients")]
    return [made for jar in jars for made in _classes(jar) if made.calls & _MAKERS]


def _classes(jar: Path) -> Iterator[ClassFile]:
    wanted = {name.encode() for name, _ in _MAKERS}
    with ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.endswith(".class"):
                data = archive.read(name)
                if any(each in data for each in wanted):
                    yield read_class(data)


def _outer(name: str) -> str:
    return name.rpartition("/")[2].partition("$")[0]


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "4.0.1"])
def test_no_class_of_a_broker_makes_a_client_that_is_not_known(version: str) -> None:
    found = {_outer(each.name) for each in makers(version)}
    assert found - _KNOWN.keys() == set(), "its client-id must be among exemptions.INTERNAL_CLIENT_IDS"
    if version == DEFAULT_VERSION:
        assert _KNOWN.keys() - found == set(), "these make no client any more"


def test_the_client_ids_of_all_of_them_are_exempt() -> None:
    ids = {client_id for names in _KNOWN.values() for client_id in names or ()}
    assert {each for each in ids if not is_internal(each)} == set()


@pytest.mark.parametrize("version", [DEFAULT_VERSION, "4.0.1"])
def test_every_prefix_that_a_broker_gives_to_its_network_utils_makes_an_exempt_client_id(version: str) -> None:
    callers = [each.name for each in makers(version) if (_UTILS, "buildNetworkClient") in each.calls]
    prefixes = {prefix for caller in callers for prefix in _prefixes(version, caller)}
    assert prefixes >= {"AddPartitionsManager", "Persister"}
    assert {each for each in prefixes if not is_internal(f"{each}-client-1")} == set()


def _prefixes(version: str, caller: str) -> Iterator[str]:
    """The first argument of each call of buildNetworkClient: the last plain word that was loaded before it."""
    command = [program("javap"), "-c", "-p", "-cp", class_path([broker_jars(version)]), caller.replace("/", ".")]
    code = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    word = ""
    for line in code.splitlines():
        if loaded := re.search(r"ldc(?:_w)? .*// String (\w+)$", line):
            word = loaded[1]
        elif "NetworkUtils.buildNetworkClient:" in line:
            yield word
