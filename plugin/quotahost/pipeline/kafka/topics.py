"""The pipeline's topics: made where they are absent, and checked where they exist.

:class:`quotahost.pipeline.job.Job` ensures them before it starts a query, and again while it runs: a topic that
somebody deletes is made anew with its own configuration, and not by a broker with the broker's defaults.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from quotahost.background import LoggedOnce
from quotahost.errors import QuotahostError
from quotahost.pipeline.kafka.clients import JvmKafka, Topic
from quotahost.records.topics import COMPACTED

log = logging.getLogger("quotahost.pipeline")

#: Configuration of a topic of which nobody needs the past.
# Ten minutes in ms. Kafka deletes closed segments only, so a segment is closed as early. Its timestamps are Kafka's, by
# which the pipeline learns Kafka's time before it publishes anything.
SHORT_LIVED: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "600000",
    "segment.ms": "600000",
    "message.timestamp.type": "LogAppendTime",
}
#: Of the dead letters: a week, and no more than 1 GiB whatever is written to the topics they come from.
DEAD_LETTERS: Final = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "1073741824",
    "segment.bytes": "67108864",
    "message.timestamp.type": "LogAppendTime",
}
_REPLICAS: Final = 3
#: Seconds to wait for more brokers since the last one came, as long as brokers do: nobody adds replicas later.
GATHERING: Final = 5.0
_LOOK: Final = 0.5  # seconds


class TopicError(QuotahostError):
    """A topic can't be used as it is; the message names the topic and what would be right."""

    exit_code = 2


class Topics:
    """Makes and checks the topics of one pipeline."""

    def __init__(
        self,
        kafka: JvmKafka,
        topics: Mapping[str, Mapping[str, str]],
        single: str,
        partitions: Mapping[str, Callable[[int], int]] | None = None,
    ) -> None:
        """Ask nothing yet.

        Args:
            kafka: asks and creates.
            topics: the configuration of each topic, by name.
            single: the topic that must have one partition: whoever leads is found by the order of its records.
            partitions: by the name of a topic, the function from the number of brokers to its number of partitions;
                the other topics get one.
        """
        self._partitions = partitions or {}
        self._kafka, self._topics, self._single = kafka, topics, single
        self._unseen: set[str] = set()  # topics that exist, although this client isn't allowed to see them
        self._policies = {name: LoggedOnce(log) for name in topics}

    def ensure(self, wait: Callable[[float], object] = time.sleep, clock: Callable[[], float] = time.monotonic) -> None:
        """Create the topics that are absent, and check the others.

        While fewer than three brokers are alive it waits for more, up to GATHERING seconds since the last one came.

        Args:
            wait: waits for so many seconds.
            clock: in seconds, monotonic.

        Raises:
            TopicError: a topic has a form with which the pipeline can't work.
            Py4JJavaError: the cluster doesn't answer, or refuses to create a topic.
        """
        there = self._kafka.topics(self._topics.keys())
        self._unseen -= there.keys()
        for name, topic in there.items():
            self._check(name, topic)
        absent = sorted(self._topics.keys() - there.keys() - self._unseen)
        if absent:
            brokers = self._gathered(wait, clock)
            replicas = min(_REPLICAS, brokers)
            created = [name for name in absent if self._create(name, brokers, replicas)]
            if created and replicas < _REPLICAS:
                text = "only %d brokers are up, so these topics have as few replicas: %s; reassign them if more come"
                log.warning(text, replicas, ", ".join(created))

    def _create(self, name: str, brokers: int, replicas: int) -> bool:
        partitions = self._partitions[name](brokers) if name in self._partitions else 1
        created = self._kafka.create(name, partitions, replicas, self._topics[name])
        if created:
            log.info("created the topic %s with %d replicas", name, replicas)
        else:  # a broker or another pipeline was quicker, or nobody has given the right to describe it
            self._unseen.add(name)
        return created

    def _gathered(self, wait: Callable[[float], object], clock: Callable[[], float]) -> int:
        """How many brokers are up, when there are enough for all replicas, or no more have come for a while."""
        most, since = 0, clock()
        while most < _REPLICAS and clock() - since < GATHERING:
            up = len(self._kafka.cluster()[1])
            if up > most:
                most, since = up, clock()
            elif most < _REPLICAS:
                wait(_LOOK)
        return max(1, most)

    def _check(self, name: str, topic: Topic) -> None:
        if name == self._single and topic.partitions != 1:
            raise TopicError(
                f"topic {name} has {topic.partitions} partitions, and must have one: by the order of its records "
                "pipelines find out which of them publishes. Delete it, and the pipeline makes it as it should be"
            )
        wanted = self._topics[name]["cleanup.policy"]
        if topic.policy and wanted not in topic.policy:
            why = "its records" if wanted == "delete" else "those of brokers that have nothing new to publish"
            loss = "stay for ever" if wanted == "delete" else "are lost"
            text = "topic %s has cleanup.policy=%s: set %s, or %s %s"
            self._policies[name].report(text, name, topic.policy, wanted, why, loss)


def wanted(
    snapshots: tuple[str, ...], compacted: tuple[str, ...], refused: str, ticks: str
) -> dict[str, dict[str, str]]:
    """The configuration of each topic of a pipeline, by name."""
    return dict.fromkeys((*snapshots, *compacted), COMPACTED) | {refused: DEAD_LETTERS, ticks: SHORT_LIVED}
