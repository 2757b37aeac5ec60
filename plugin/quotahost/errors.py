"""The base of every error that quotahost raises for a person to read."""

from typing import ClassVar


class QuotahostError(Exception):
    """Something is wrong that an operator or plugin author can mend; the message says what, and how."""

    exit_code: ClassVar[int] = 1  # of a command that this error ends
