"""The options of a JAAS configuration (``sasl.jaas.config``), and the user that they name."""

from __future__ import annotations

import re
from typing import Final

#: A name and a value, each quoted (with backslash escapes) or bare. Read from the left, option by option, no text
#: within a quoted value is mistaken for an option.
_OPTION: Final = re.compile(r'"?([\w.]+)"?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))')


def options(jaas: str) -> dict[str, str]:
    """All options by name; of one that is given twice the last holds, as in Kafka (JaasConfig)."""
    return {name: bare or re.sub(r"\\(.)", r"\1", quoted) for name, quoted, bare in _OPTION.findall(jaas)}


def login_name(jaas: str, mechanism: str) -> str | None:
    """The principal's name with which a client logs in by this SASL mechanism; None if it can't be found there."""
    found = options(jaas)
    if mechanism == "GSSAPI":
        principal = found.get("principal")
        # Kafka's default rule (sasl.kerberos.principal.to.local.rules) takes host and realm away.
        return re.split("[/@]", principal)[0] if principal else None
    return found.get("unsecuredLoginStringClaim_sub" if mechanism == "OAUTHBEARER" else "username")
