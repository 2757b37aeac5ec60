"""The error of a file, or of a cluster that doesn't answer. ``quotahost quotas`` ends with 2 for each."""

from __future__ import annotations

from typing import ClassVar

from quotahost.errors import QuotahostError


class DeclarationError(QuotahostError):
    """A file or a cluster can't be used; each line of the message has place, value and remedy."""

    exit_code: ClassVar[int] = 2
