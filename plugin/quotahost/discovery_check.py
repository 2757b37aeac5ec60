"""Whether an object can take a role, by the Protocols of :mod:`quotahost.api`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel

from quotahost.api import DataSourceTask, QuotaFactorSource, QuotaPolicy, QuotaSupplier

_PROTOCOLS: Final[dict[str, type]] = {
    "supplier": QuotaSupplier,
    "factor_source": QuotaFactorSource,
    "policy": QuotaPolicy,
    "task": DataSourceTask,
}


def checked(role: str, plugin: Any) -> Any:
    """The plugin, if it can take the role.

    Raises:
        TypeError: it lacks a method of the role's Protocol, or is a task with a bad period.
    """
    protocol = _PROTOCOLS[role]
    methods = [name for name, value in vars(protocol).items() if name[0] != "_" and callable(value)]
    lacking = [name for name in methods if not callable(getattr(plugin, name, None))]
    if lacking:
        what = f"{type(plugin).__name__} has no method {', '.join(lacking)}"
        raise TypeError(f"{what}; implement {protocol.__name__} of quotahost.api")
    if role == "task":
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
    model = getattr(entry, "Settings", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise TypeError(f"its attribute Settings is {model!r}; make it a subclass of pydantic.BaseModel")
