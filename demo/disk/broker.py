"""The broker of the demo's second part: two log directories, each a volume, of which one will fill.

Kafka's window is two samples here, so that producers are slowed evenly; with its default of eleven each would get the
window's bytes in one second and nothing for ten. With ``factor.scope=topics`` only who writes to the full volume is
slowed.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from demo.quotas.scenario import MEGA
from harness.kafka.admin import create_topic
from harness.kafka.node import KafkaNode
from harness.plugin import FENCE, JAR, plugin_properties
from harness.system.filesystem import own_file_system
from harness.system.waiting import eventually

QUOTA: Final = 2 * MEGA  # bytes/s of each user
USERS: Final = ("blue", "green", "purple", "service")
SETTINGS: Final = {
    "static.produce": str(QUOTA),
    "static.scope": "client",
    "static.excluded.principal.name.list": "User:service",
    "fence.authorizer": "none",
    "factor.source": "local",
    "factor.scope": "topics",
}
WINDOW: Final = 2.0  # seconds: Kafka's window here
# Without an initial delay a young broker, too, deletes a topic's files at once.
QUICK_DELETION: Final = {"log.segment.delete.delay.ms": "200", "log.initial.task.delay.ms": "100"}
PROPERTIES: Final = FENCE | QUICK_DELETION | {"quota.window.num": "2"}


@contextmanager
def broker(directory: Path) -> Iterator[tuple[KafkaNode, bool]]:
    """A running broker; also yields whether its log directories are two volumes, which needs the right to mount."""
    users = {name: name for name in USERS}
    properties = plugin_properties(SETTINGS) | PROPERTIES
    node = KafkaNode(directory, classpath=[JAR], properties=properties, users=users, log_dirs=2)
    with ExitStack() as stack:
        mounted = [stack.enter_context(own_file_system(volume)) for volume in node.data_dirs]
        yield stack.enter_context(node), all(mounted)


def topic_on(node: KafkaNode, directory: Path, name: str) -> str:
    """Creates topics until one lies in that log directory, since Kafka takes the one with the fewest partitions."""
    for number in range(10):
        topic = f"{name}-{number}"
        create_topic(node, topic)
        if eventually(partial(_directory_of, node, topic)) == directory:
            return topic
    raise RuntimeError(f"Kafka put no topic into {directory}")


def _directory_of(node: KafkaNode, topic: str) -> Path | None:
    return next((each for each in node.data_dirs if (each / f"{topic}-0").exists()), None)
