"""The one reader of a JAAS configuration (``sasl.jaas.config``): its options, and the user that they name.

Kafka reads it with Java's ``StreamTokenizer`` (``JaasConfig``): names and values are words, or texts in double or
single quotes with backslash escapes; comments are skipped.
"""

from __future__ import annotations

import re
from typing import Final

_QUOTED: Final = r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'"""
_COMMENT: Final = r"/\*.*?\*/|//[^\n]*"
#: Read from the left, option by option, no text within a quoted value is mistaken for an option.
_OPTION: Final = re.compile(rf"""{_COMMENT}|({_QUOTED}|[^\s;="']+)\s*=\s*({_QUOTED}|[^\s;"']+)""", re.DOTALL)
#: StreamTokenizer's escapes; any other character stands for itself.
_ESCAPE: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def options(jaas: str) -> dict[str, str]:
    """All options by name; of one that is given twice the last holds, as in Kafka (JaasConfig)."""
    return {_plain(name): _plain(value) for name, value in _OPTION.findall(jaas) if name}


def login_name(jaas: str, mechanism: str) -> str | None:
    """The principal's name with which a client logs in by this SASL mechanism; None if it can't be found there."""
    found = options(jaas)
    if mechanism == "GSSAPI":
        principal = found.get("principal")
        # Kafka's default rule (sasl.kerberos.principal.to.local.rules) takes host and realm away.
        return re.split("[/@]", principal)[0] if principal else None
    return found.get("unsecuredLoginStringClaim_sub" if mechanism == "OAUTHBEARER" else "username")


def _plain(text: str) -> str:
    return _ESCAPE.sub(_escaped, text[1:-1]) if text[0] in "\"'" else text


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _ESCAPES.get(code, code)
