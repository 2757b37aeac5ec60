"""Reads the part of the Containerfile language that ``containers/`` uses, into instructions.

A builder here needs no container engine: ``harness.system.image`` runs these instructions in a Debian root. What this
reader doesn't know it refuses, so that no test passes by leaving a step out.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

KNOWN: Final = frozenset(["ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "RUN", "USER", "WORKDIR"])
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}|\$(\w+)")


class NotUnderstood(ValueError):
    """An instruction, or a form of one, that this reader doesn't know."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its name in capitals, and the rest of its lines joined by blanks."""

    name: str
    text: str

    def flags(self) -> tuple[dict[str, str], list[str]]:
        """Its leading ``--name=value`` words, and the words after them."""
        words, flags = self.text.split(), {}
        while words and words[0].startswith("--"):
            name, _, value = words.pop(0)[2:].partition("=")
            flags[name] = value
        return flags, words

    def exec_form(self) -> list[str]:
        """The words of ENTRYPOINT or CMD, which must be in JSON's form.

        Raises:
            NotUnderstood: it is in the shell's form.
        """
        try:
            words = json.loads(self.text)
        except ValueError:
            raise NotUnderstood(f"{self.name} {self.text}: only the form [...] is known") from None
        return [str(word) for word in words]


def instructions(text: str) -> Iterator[Instruction]:
    """All instructions of a Containerfile, in their order; comments and continued lines are resolved.

    Raises:
        NotUnderstood: one is not in KNOWN.
    """
    # A comment may stand between continued lines, so comments go first.
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if not line.strip():
            continue
        name, _, rest = line.strip().partition(" ")
        if name not in KNOWN:
            raise NotUnderstood(f"{name} is none of {', '.join(sorted(KNOWN))}")
        yield Instruction(name, rest.strip())


def expand(text: str, values: Mapping[str, str]) -> str:
    """The text with ``$NAME`` and ``${NAME}`` replaced; what is not set is empty, as for a container engine."""
    return _VARIABLE.sub(lambda found: values.get(found[1] or found[2], ""), text)
