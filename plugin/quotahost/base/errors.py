"""All errors that quotahost raises for people derive from QuotahostError; Unusable is a command's error."""

from typing import ClassVar


class QuotahostError(Exception):
    """An operator or plugin author can fix this error; the message says what is wrong and how to fix it."""

    exit_code: ClassVar[int] = 1  # the exit code of a command that ends with this error


class Unusable(QuotahostError):
    """A command can't use a file, a topic, a library or a cluster. The message has the remedy on a second line."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}\n  -> {remedy}" if remedy else problem)
        self.problem, self.remedy = problem, remedy
