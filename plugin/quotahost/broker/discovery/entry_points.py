"""Finds plugins by their entry points and imports them; every error names the role, the plugin and a remedy.

A package offers a plugin as an entry point of the group of its role (:class:`quotahost.api.Role`). Here the host, the
testing kit and ``doctor`` import the one that a property names, and ``quotahost plugins`` surveys all that are
installed. :mod:`quotahost.broker.discovery.build` goes on from the imported class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel

from quotahost.api import Role
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import SettingsError
from quotahost.text import nearest, redact


class PluginError(QuotahostError):
    """A plugin that can't be used: its role and name, what failed, and what to do.

    Attributes:
        role: the plugin's role.
        name: the name of its entry point.
        failed: what failed and what to do, without role and name.
    """

    def __init__(self, role: Role, name: str, failed: str) -> None:
        """Make the message of the three."""
        self.role, self.name, self.failed = role, name, failed
        super().__init__(f"{role} {name!r}: {failed}")


@contextmanager
def failing(role: Role, name: str, what: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Turn whatever a plugin's own code raises into a PluginError that says ``what`` and shows no secret."""
    try:
        yield
    except (PluginError, SettingsError):  # these name the plugin and a remedy already
        raise
    except BaseException as error:  # sys.exit in a plugin must not end the broker's host
        full = _one_line(error)
        text = redact(full, secrets)
        # A cause that contains secrets would bring them back into tracebacks.
        raise PluginError(role, name, f"{what}: {text}") from (error if text == full else None)


def load(role: Role, name: str) -> Any:
    """Import the entry point of this role and name, and no other.

    Raises:
        PluginError: there is none, more than one distribution offers it, or it fails to import.
    """
    entry = _entry_point(role, name)
    origin = _origin(entry)
    with failing(role, name, f"{origin} fails to import"):
        return entry.load()


def settings_model(entry: Any) -> type[BaseModel] | None:
    """The pydantic model that an entry point declares by its attribute ``Section``; None if it declares none.

    Raises:
        TypeError: the attribute is something else.
    """
    model = getattr(entry, "Section", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise TypeError(f"its attribute Section is {model!r}; make it a subclass of pydantic.BaseModel")


def _entry_point(role: Role, name: str) -> EntryPoint:
    known = entry_points(group=role.group)
    matching = [entry for entry in known if entry.name == name]
    if not matching:
        raise PluginError(role, name, f"there is none; {_hint(role, name, sorted(known.names))}")
    if len(matching) > 1:
        origins = " and ".join(map(_origin, matching))
        raise PluginError(role, name, f"offered more than once, by {origins}; uninstall all but one")
    return matching[0]


def _origin(entry: EntryPoint) -> str:
    """Where an entry point comes from: its target, distribution and version."""
    dist = entry.dist
    return f"{entry.value} of {dist.name} {dist.version}" if dist else entry.value


def _hint(role: Role, name: str, known: Sequence[str]) -> str:
    if not known:
        return f"no package installed here has an entry point of the group {role.group}"
    like = nearest(name, known)
    return (f"did you mean {like!r}? " if like else "") + f"There are: {', '.join(known)}"


def _one_line(error: BaseException) -> str:
    """The type and the text of an error, without line breaks."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


# ---- the survey ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """One entry point as :func:`survey` found it; ``error`` is "" if a broker could use it."""

    name: str
    distribution: str
    version: str
    error: str


def survey() -> dict[Role, list[Found]]:
    """Every installed entry point of every role, and why one can't be used; it imports all of them."""
    return {
        role: [_found(role, entry) for entry in sorted(entry_points(group=role.group), key=lambda e: e.name)]
        for role in Role
    }


def _found(role: Role, entry: EntryPoint) -> Found:
    error = ""
    try:
        _entry_point(role, entry.name)  # fails if two distributions offer the name
        settings_model(entry.load())
    except PluginError as failure:
        error = failure.failed
    except BaseException as failure:  # a plugin's sys.exit ends no survey
        error = _one_line(failure)
    dist = entry.dist
    return Found(entry.name, dist.name if dist else "?", dist.version if dist else "?", error)
