"""Texts and numbers as Python's own: a plugin's subclass of one may compare, hash or write itself in its own way.

Such as NumPy's: that a ``np.float64`` equals 0 is no bool. Private; it imports nothing else of quotahost.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")
#: These can't be overridden, where ``str()`` and the like can.
_PLAIN: Final[dict[type, Callable[[Any], Any]]] = {
    bool: lambda value: value, str: str.__str__, int: int.__int__, float: float.__float__,
}  # fmt: skip


def plain(value: T) -> T:
    """The same text, number or truth value, of Python's own type; any other value as it is."""
    return next((make(value) for kind, make in _PLAIN.items() if isinstance(value, kind)), value)
