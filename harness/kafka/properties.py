"""Writes Java properties files and JAAS configs, with the escapes that Java expects.

Users' names and passwords in tests contain every special character, and both formats must keep them unchanged.
"""

from collections.abc import Mapping
from pathlib import Path

import javaproperties


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Writes a file from which ``java.util.Properties.load`` reads these properties.

    Only its owner can read it, because it may contain passwords.
    """
    path.touch(mode=0o600)
    path.write_text(javaproperties.dumps(dict(properties), timestamp=None), encoding="ascii")


def plain_jaas(users: Mapping[str, str], own_user: str | None = None) -> str:
    """Returns the ``sasl.jaas.config`` of a PLAIN listener.

    Args:
        users: the passwords of the users who may connect, by user.
        own_user: the user as which the broker connects to other brokers.
    """
    options = {f"user_{name}": password for name, password in users.items()}
    if own_user is not None:
        options |= {"username": own_user, "password": users[own_user]}
    listed = " ".join(f"{_quoted(key)}={_quoted(value)}" for key, value in options.items())
    return f"org.apache.kafka.common.security.plain.PlainLoginModule required {listed};"


def login_jaas(mechanism: str, user: str, password: str) -> str:
    """Returns the ``sasl.jaas.config`` of a client that connects as this user with PLAIN or SCRAM."""
    module = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
    login = f"username={_quoted(user)} password={_quoted(password)}"
    return f"org.apache.kafka.common.security.{module}LoginModule required {login};"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
