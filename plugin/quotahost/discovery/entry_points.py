"""The entry points of each role: the one of a name, or all of them; errors name role, plugin and remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from pydantic import BaseModel

from quotahost.api import Role
from quotahost.errors import QuotahostError
from quotahost.settings.declaration import SettingsError
from quotahost.text import nearest, redact

# TODO(merge) Whether an object can take a role, by the Protocols of :mod:`quotahost.api.roles`.


class PluginError(QuotahostError):
    """A plugin that can't be had: its role and name, what failed, and what to do."""

    def __init__(self, role: Role, name: str, failed: str) -> None:
        """Make the message of the three."""
        self.role, self.name = role, name
        super().__init__(f"{role} {name!r}: {failed}")


@dataclass(frozen=True, slots=True)
class Found:
    """One entry point as :func:`survey` found it; ``error`` is "" if it can be used."""

    name: str
    distribution: str
    version: str
    error: str


@contextmanager
def failing(role: Role, name: str, what: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Whatever a plugin's own code raises becomes a PluginError without its secrets."""
    try:
        yield
    except (PluginError, SettingsError):
        raise
    except BaseException as error:  # sys.exit in a plugin must not end the broker's host
        told = redact(why_not(error), secrets)
        # A cause that holds secrets would bring them back into tracebacks.
        cause = error if told == why_not(error) else None
        raise PluginError(role, name, f"{what}: {told}") from cause


def entry_point(role: Role, name: str) -> EntryPoint:
    """The one entry point of this role and name.

    Raises:
        PluginError: there is none, or more than one distribution offers it.
    """
    known = entry_points(group=role.group)
    matching = [entry for entry in known if entry.name == name]
    if not matching:
        raise PluginError(role, name, f"there is none; {_hint(role.group, name, sorted(known.names))}")
    if len(matching) > 1:
        origins = " and ".join(origin(entry) for entry in matching)
        raise PluginError(role, name, f"offered more than once, by {origins}; uninstall all but one")
    return matching[0]


def origin(entry: EntryPoint) -> str:
    """Where an entry point comes from: its target, distribution and version."""
    dist = entry.dist
    return f"{entry.value} of {dist.name} {dist.version}" if dist else entry.value


def survey() -> dict[Role, list[Found]]:
    """Every entry point of every role, and whether it can be used or why not; it imports all of them."""
    return {
        role: [_found(role, entry) for entry in sorted(entry_points(group=role.group), key=lambda e: e.name)]
        for role in Role
    }


def _found(role: Role, entry: EntryPoint) -> Found:
    error = ""
    try:
        entry_point(role, entry.name)
        settings_model(entry.load())
    except PluginError as failure:
        error = str(failure).partition(": ")[2]
    except BaseException as failure:
        error = why_not(failure)
    dist = entry.dist
    return Found(entry.name, dist.name if dist else "?", dist.version if dist else "?", error)


def _hint(group: str, name: str, known: Sequence[str]) -> str:
    if not known:
        return f"no package installed here has an entry point of the group {group}"
    like = nearest(name, known)
    return (f"did you mean {like!r}? " if like else "") + f"There are: {', '.join(known)}"


def checked(role: Role, plugin: Any) -> Any:
    """The plugin, if it can take the role.

    Raises:
        TypeError: it lacks a method of the role's Protocol, or is a task with a bad period.
    """
    protocol = role.protocol
    methods = [name for name, value in vars(protocol).items() if name[0] != "_" and callable(value)]
    lacking = [name for name in methods if not callable(getattr(plugin, name, None))]
    if lacking:
        what = f"{type(plugin).__name__} has no method {', '.join(lacking)}"
        raise TypeError(f"{what}; implement {protocol.__name__} of quotahost.api.roles")
    if role is Role.TASK:
        _check_period(getattr(plugin, "period", None))
    return plugin


def _check_period(period: object) -> None:
    if not isinstance(period, timedelta) or period <= timedelta():
        raise TypeError(f"its period is {period!r}; make it a datetime.timedelta above 0")


def why_not(error: BaseException) -> str:
    """The error in one line: its type and its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def settings_model(entry: Any) -> type[BaseModel] | None:
    """The pydantic model that an entry declares by its attribute ``Settings``; None if it has none.

    Raises:
        TypeError: the attribute is something else.
    """
    model = getattr(entry, "Section", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise TypeError(f"its attribute Settings is {model!r}; make it a subclass of pydantic.BaseModel")
