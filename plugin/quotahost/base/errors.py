"""The base of every error that quotahost raises for a person to read, and a command's that lacks what it needs."""

from typing import ClassVar


class QuotahostError(Exception):
    """Something is wrong that an operator or plugin author can mend; the message says what, and how."""

    exit_code: ClassVar[int] = 1  # of a command that this error ends


class Unusable(QuotahostError):
    """A command can't use what it needs: a file, a topic, a library, a cluster. A remedy is a line of its own."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}\n  -> {remedy}" if remedy else problem)
        self.problem, self.remedy = problem, remedy
