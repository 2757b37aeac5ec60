"""The base of every error that quotahost raises for a person to read.

Private. The command line catches it once and prints its message without a traceback; the host logs the message. This
module imports nothing else of quotahost.
"""

from typing import ClassVar


class QuotahostError(Exception):
    """Something is wrong that an operator or plugin author can mend; the message says what, and how."""

    exit_code: ClassVar[int] = 1  # of a command that this error ends
