"""Text for people: "did you mean NAME?", names and errors short and escaped, as log lines need them, no secrets."""

import difflib
import json
import logging
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import quote, quote_plus

_MOST_COMPARED: Final = 200  # characters of a name, and known names: two that are alike take half a millisecond
_SECRET_LINE: Final = 16  # characters: of a key that is printed line by line


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, for a "did you mean"; None if none is alike."""
    return next(iter(difflib.get_close_matches(name[:_MOST_COMPARED], [*known][:_MOST_COMPARED], n=1)), None)


def meant(name: str, known: Iterable[str], otherwise: str, before: str = "") -> str:
    """``did you mean NAME?``, of the nearest known name with what stands before it; ``otherwise`` if none is alike."""
    like = nearest(name, known)
    return f"did you mean {before}{like}?" if like else otherwise


def bounded(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The first lines; where there are more, a last one says of how many ``what`` it is in the place."""
    more = len(lines) - most
    return [*lines[:most], f"... and {more} more {what}"] if more > 0 else [*lines]


def shortened(text: str) -> str:
    """The text; of more than 1,000 characters its beginning and its end."""
    # What is refused is quoted, in the log and in Kafka's answer, which takes 32,767 bytes of reason.
    return text if len(text) <= 1000 else f"{text[:700]} … {text[-297:]}"


def printable(text: str) -> str:
    """The text, cut at 200 characters; in quotes and escaped where it would break a line of a log."""
    # Clients and other brokers' records choose such names: unescaped, a line break could forge a line of the log.
    text = text if len(text) <= 200 else text[:200] + "…"
    return text if text and text.isprintable() and text.strip() == text else repr(text)


def escaped(text: str, keep: str = "") -> str:
    """The text with escapes for all that a terminal obeys or hides, such as ESC and U+202E, but for ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


class EscapingFormatter(logging.Formatter):
    """Writes log lines in which no name from outside can command a terminal, or look like a line of its own."""

    def __init__(self, fmt: str, secrets: Callable[[], Iterable[str]] = list) -> None:
        super().__init__(fmt)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, without secrets; further ones, as of a traceback, are indented."""
        # The whole: its traceback may be one that another handler has formatted.
        text = redact(super().format(record), self._secrets())
        return escaped(text, keep="\n\t").replace("\n", "\n  ")


def short(problem: Exception) -> str:
    """An exception in one line of bounded length, with what has caused it; Py4J shows whole stacks of one of Java's."""
    cause = java = getattr(problem, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    first, last = (_line(str(each)) for each in (java or problem, cause or problem))
    return f"{type(problem).__name__}: {first}" + ("" if last in first else f", because of {last}")


def _line(text: str) -> str:
    # Kafka quotes what it has taken for a name in a wrong sasl.jaas.config: maybe a part of a password.
    return "sasl.jaas.config can't be read" if "JAAS config" in text else next(iter(text.splitlines()), "")[:300]


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with ``***`` in place of each of the secrets, however it is written."""
    # The longest first: one may contain another.
    for form in sorted({form for secret in secrets for form in _written(secret)}, key=len, reverse=True):
        # A password may be set to "", which replace() finds between any two characters.
        text = text.replace(form, "***") if form else text
    return text


def _written(secret: str) -> Iterator[str]:
    """A secret as it is, by lines, and as Python, JSON, a URL and an HTTP header write it."""
    yield from (line for line in secret.splitlines() if len(line) >= _SECRET_LINE)
    encoded = secret.encode(errors="surrogatepass")
    yield from (secret, repr(secret)[1:-1], repr(encoded)[2:-1], json.dumps(secret)[1:-1])
    yield from (quote(encoded), quote(encoded, safe=""), quote_plus(encoded), b64encode(encoded).decode())
