"""The base of every error that quotahost raises for a person to read.

The command line catches it once and prints its message without a traceback; the host logs it as it is. Knows nothing
else of quotahost.
"""


class QuotahostError(Exception):
    """Something is wrong that an operator or plugin author can mend; the message says what, and how."""
