"""Which of a broker's listeners let anybody in without saying who they are."""

from __future__ import annotations

from quotahost.cli.broker_file import BrokerFile


def unauthenticated(broker: BrokerFile) -> list[str]:
    """Names of the client listeners on which every principal is ``ANONYMOUS``.

    PLAINTEXT never authenticates, SSL only with ``ssl.client.auth=required`` (for all or for the
    listener). Controller listeners are left out: clients have no business there.
    """
    protocols = dict(_pairs(broker.get("listener.security.protocol.map")))
    controllers = _items(broker.get("controller.listener.names"))
    listeners = [
        item.partition(":")[0].strip() for item in _items(broker.get("listeners", "PLAINTEXT://:9092"))
    ]
    names = [name for name in listeners if name not in controllers]
    return [name for name in names if _is_open(broker, name, protocols.get(name, name).upper())]


def _is_open(broker: BrokerFile, listener: str, protocol: str) -> bool:
    if protocol != "SSL":
        return protocol == "PLAINTEXT"
    general = broker.get("ssl.client.auth", "none")
    return broker.get(f"listener.name.{listener.lower()}.ssl.client.auth", general).lower() != "required"


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _pairs(text: str) -> list[tuple[str, str]]:
    parts = (item.partition(":") for item in _items(text))
    return [(name.strip(), value.strip()) for name, _, value in parts]
