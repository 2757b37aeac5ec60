"""These functions make text for people: hints ("did you mean NAME?"), short escaped names and errors, no secrets."""

import difflib
import json
import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

_MOST_COMPARED: Final = 200  # characters of each name, and names at most: to compare two takes half a ms
_SECRET_LINE: Final = 16  # characters: a line of a secret is also a secret from this length on, such as a key's line


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is most similar, for a "did you mean"; None if no name is similar."""
    return next(iter(difflib.get_close_matches(name[:_MOST_COMPARED], [*names][:_MOST_COMPARED], n=1)), None)


def meant(name: str, names: Iterable[str], otherwise: str, before: str = "") -> str:
    """``did you mean NAME?`` for the nearest of the names, with the prefix ``before``; else the text ``otherwise``."""
    like = nearest(name, names)
    return f"did you mean {before}{like}?" if like else otherwise


def bounded(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The first ``most`` lines; if there are more, one more line tells how many ``what`` are missing."""
    more = len(lines) - most
    return [*lines[:most], f"... and {more} more {what}"] if more > 0 else [*lines]


def shortened(text: str) -> str:
    """The text; if it has more than 1,000 characters, only its beginning and its end."""
    # Errors quote refused values in the log and in Kafka's answer, whose message has at most 32,767 bytes.
    return text if len(text) <= 1000 else f"{text[:700]} … {text[-297:]}"


def printable(text: str) -> str:
    """The text, cut at 200 characters; in quotes and escaped if it would break a log line."""
    # Clients and other brokers' records choose such names: an unescaped line break could forge a log line.
    text = text if len(text) <= 200 else text[:200] + "…"
    return text if text and text.isprintable() and text.strip() == text else repr(text)


def escaped(text: str, keep: str = "") -> str:
    """The text with unprintable characters escaped, such as ESC and U+202E, except the characters in ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class EscapingFormatter(logging.Formatter):
    """Formats log lines so that a client's or topic's name can neither control a terminal nor forge a log line."""

    def __init__(self, fmt: str, secrets: Callable[[], Iterable[str]] = list) -> None:
        super().__init__(fmt)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """The formatted record, without secrets; the lines after the first, such as a traceback, are indented."""
        # The whole line is redacted, because another handler may have formatted the record's traceback.
        text = redact(super().format(record), self._secrets())
        return escaped(text, keep="\n\t").replace("\n", "\n  ")


def short(problem: Exception) -> str:
    """An exception and its root cause in one short line; for Java's exceptions Py4J prints whole stack traces."""
    cause = java = getattr(problem, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    first, last = (_line(str(each)) for each in (java or problem, cause or problem))
    return f"{type(problem).__name__}: {first}" + ("" if last in first else f"; root cause: {last}")


def _line(text: str) -> str:
    # For a malformed sasl.jaas.config Kafka quotes a part of it, which may be a part of a password.
    return "sasl.jaas.config can't be read" if "JAAS config" in text else next(iter(text.splitlines()), "")[:300]


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with ``***`` in place of each secret, in each of its written forms."""
    # The longest form comes first, because it may contain another form.
    for form in sorted({form for secret in secrets for form in _written(secret)}, key=len, reverse=True):
        # A password may be "", which replace() would find between any two characters.
        text = text.replace(form, "***") if form else text
    return text


def _written(secret: str) -> Iterator[str]:
    """The forms of a secret: plain, its lines, and as Python, JSON, a URL and an HTTP header write it."""
    yield from (line for line in secret.splitlines() if len(line) >= _SECRET_LINE)
    encoded = secret.encode(errors="surrogatepass")
    yield from (secret, repr(secret)[1:-1], repr(encoded)[2:-1], json.dumps(secret)[1:-1])
    yield from (quote(encoded), quote(encoded, safe=""), quote_plus(encoded), b64encode(encoded).decode())
