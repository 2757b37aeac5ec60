"""This module finds a plugin by the name of its entry point, imports it, validates its properties, and builds it.

1. A package offers a plugin as an entry point of the group of its role (:class:`quotahost.api.Role`). ``configured``
   returns the plugins that the broker's properties name; ``load`` imports one of them.
2. ``plugin_settings`` validates the properties ``plugin.NAME.*`` by the model ``Section`` of the imported class or
   function. The properties belong to every configured plugin named NAME: a factor source and a task with the same name
   see the same properties, so they need the same model.
3. ``construct`` calls the class or function with its context and checks that the result has the role's methods.

Every PluginError has the role, the plugin and a remedy. The host builds all configured plugins in this way, the testing
kit builds one. ``doctor`` only imports and validates; ``quotahost plugins`` calls ``survey`` for all installed plugins.
"""

import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from importlib.metadata import EntryPoint, EntryPoints, distributions, entry_points
from typing import Any, Final

from pydantic import BaseModel

from quotahost.api import Broker, Context, Role
from quotahost.api.context import LoadedPlugin
from quotahost.base.errors import QuotahostError
from quotahost.base.text import escaped, meant, nearest, redact, shortened
from quotahost.settings.broker import Settings, configured_names
from quotahost.settings.declaration import PREFIX, SettingsError
from quotahost.settings.sections import read_section, revealed, secret_values
from quotahost.settings.types import NAME


class PluginError(QuotahostError):
    """A plugin can't be used; the message has its role and name, the failure, and the remedy."""

    def __init__(self, role: Role, name: str, failed: str) -> None:
        self.role, self.name, self.failed = role, name, failed
        super().__init__(shortened(f"{role} {name!r}: {failed}"))


@contextmanager
def failing(role: Role, name: str, what: str, secrets: Callable[[], list[str]] = list) -> Iterator[None]:
    """Turn any exception of a plugin's own code into a PluginError, which begins with ``what`` and shows no secret."""
    try:
        yield
    except (PluginError, SettingsError):  # these errors already name the plugin and a remedy
        raise
    except BaseException as error:  # also SystemExit: a plugin must not end the broker's host
        hidden, told = secrets(), traceback.TracebackException.from_exception(error)
        # Not str(error), which may raise. Whitespace is joined after redact(): a password may have two blanks in a row.
        text = escaped(" ".join(redact(str(told), hidden).split()))
        whole = "".join(told.format())
        # A traceback would show the secrets of the cause, so such a cause is dropped.
        cause = error if redact(whole, hidden) == whole else None
        raise PluginError(role, name, ": ".join(filter(None, (what, type(error).__name__, text)))) from cause


# ---- entry points ----------------------------------------------------------------------------------------------


def configured(settings: Settings) -> list[tuple[Role, str]]:
    """The role and name of every plugin that the settings name, in the order in which the host builds the plugins."""
    names = configured_names(settings)
    return [(role, name) for role in Role for name in names[role.broker_property]]


def load(role: Role, name: str, before: Callable[[str], None] = lambda text: None) -> Any:
    """Import this entry point and no other. Raises PluginError unless it exists exactly once and can be imported.

    Before the first import of a module that is not quotahost's, ``before`` is called with a line for the log.
    """
    offered = _offered(role, name)
    matching = [entry for entry in offered if entry.name == name]
    if not matching:
        like, names = nearest(name, sorted(offered.names)), ", ".join(sorted(offered.names))
        stands = f"remove it from {PREFIX}{role.broker_property} (if Kafka stores that, with kafka-configs.sh)"
        install = f"install its package, whose entry point is of the group {role.group}, or {stands}."
        hint = f"did you mean {like!r}?" if like else "leave the property empty." if name == "none" else install
        raise PluginError(role, name, f"no such plugin is installed; {hint} Installed plugins: {names}")
    origins = " and ".join(map(_origin, matching))
    if len(matching) > 1:
        raise PluginError(
            role, name, f"offered more than once, by {origins}; uninstall all but one, or give yours another name"
        )
    if not matching[0].pattern.match(matching[0].value):
        form = "write MODULE:CLASS with letters, digits, _ and dots"
        raise PluginError(role, name, f"the entry point {origins} is invalid; {form}")
    if matching[0].module not in sys.modules and not is_own(matching[0].module):
        before(f"{role} {name!r} is being imported: {origins}")
    with failing(role, name, f"{origins} fails to import"):
        entry = matching[0].load()
        if not callable(entry):
            raise TypeError("it can't be called; name a class or function in the entry point, as MODULE:CLASS")
        return entry


def is_own(module: str) -> bool:
    """True for a module of quotahost itself."""
    return module.startswith("quotahost.")


def _offered(role: Role, name: str = "*") -> EntryPoints:
    try:
        # An interrupted upgrade leaves pip's backup, such as ~cme-1.0.dist-info, so an entry point may appear twice.
        return EntryPoints(dict.fromkeys(entry_points(group=role.group)))
    except Exception as error:  # importlib reads the entry points of all packages, so one broken package hides all
        text = f"the entry points of {_broken_package()} can't be read ({type(error).__name__}: {error})"
        raise PluginError(role, name, f"{text}; reinstall the package") from error


def _broken_package() -> str:
    for dist in distributions():
        try:
            dist.entry_points  # noqa: B018 - the property reads the file
        except Exception:
            return f"the package {dist.name} in {dist.locate_file('')}"
    return "a package"


def _origin(entry: EntryPoint) -> str:
    package: Any = entry.dist  # None only for an EntryPoint that importlib has not found itself
    return f"{entry.value} of {package.name} {package.version}"


# ---- a plugin's own properties ---------------------------------------------------------------------------------


def settings_model(entry: Any) -> type[BaseModel] | None:
    """The entry point's attribute ``Section``, or None. Raises TypeError if the attribute is no pydantic model."""
    model = getattr(entry, "Section", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise TypeError(f"its attribute Section is {model!r}; make it a subclass of pydantic.BaseModel")


def plugin_settings(role: Role, name: str, settings: Settings, entry: Any) -> Any:
    """The plugin's own validated properties; None if it has no model. Raises PluginError or SettingsError."""
    with failing(role, name, "cannot check its settings", partial(_secrets, settings, None, [(name, entry)])):
        return read_section(name, settings.plugin.get(name, {}), settings_model(entry))


def _secrets(settings: Settings, broker: Broker | None, plugins: Iterable[tuple[str, Any]]) -> list[str]:
    """The secrets that no error may show: the passwords of the Kafka clients, and the secrets of these plugins.

    ``plugins`` are pairs of a name and an entry. If a plugin's model can't be read, its whole section is secret.
    """
    clients = [revealed(settings.kafka), revealed(settings.kafka_admin)]
    with suppress(Exception):  # the broker's keystore may be unreadable
        clients += [broker.client_config()] if broker else []  # by default the broker's own login
    found = [text for client in clients for text in secret_values(client, None)]
    for name, entry in plugins:
        section = settings.plugin.get(name, {})
        try:
            found += secret_values(section, settings_model(entry))
        except BaseException:
            found += section.values()
    return found


def secrets(settings: Settings, broker: Broker) -> list[str]:
    """The secrets of the Kafka clients, and of all plugins that the settings name."""
    plugins: list[tuple[str, Any]] = []
    for role, name in configured(settings):
        if name not in settings.plugin:
            continue  # without properties it has no secrets, and load() looks at all installed packages
        entry = None  # the package may be gone: then the properties' names decide what is secret
        with suppress(PluginError):
            entry = load(role, name)
        plugins.append((name, entry))
    return _secrets(settings, broker, plugins)


# ---- building --------------------------------------------------------------------------------------------------


def construct(role: Role, entry: Any, context: Context[Any]) -> LoadedPlugin:
    """Build the plugin of this entry point. Raises PluginError if the build fails or the plugin lacks a method."""
    secrets = partial(_secrets, context.settings, context.broker, [(context.name, entry)])
    plugin: Any = None
    try:
        with failing(role, context.name, "cannot be built", secrets):
            plugin = entry(context)
        with failing(role, context.name, "does not implement its role", secrets):
            _check_methods(role, plugin, type(plugin).__name__)  # now, as the host may call a method only hours later
            if role is Role.TASK:
                check_period(getattr(plugin, "period", None))
    except BaseException:
        # No other code has the plugin, so this code must close it: it may have started threads.
        with suppress(BaseException), context.closing:
            plugin.close()
        raise
    return LoadedPlugin(role, plugin, context)


#: The methods of any role whose result the host ignores.
_TOLD: Final = ("tick", "client_quota_changed", "cluster_changed", "factor_in_force", "reconfigure", "close")


def _check_methods(role: Role, plugin: Any, named: str) -> None:
    """Raise TypeError if the plugin, or the class of this name, lacks a method of its role's Protocol.

    Methods with ``async def`` or ``yield`` are refused, too: a call would run nothing, without an error.
    """
    # isinstance() with a Protocol doesn't tell which method is missing, and a class that inherits from the Protocol has
    # the Protocol's own methods, which do nothing.
    methods = {name: method for name, method in vars(role.protocol).items() if name[0] != "_"}
    found = {name: getattr(plugin, name, None) for name in methods}
    if lacking := [n for n, own in found.items() if not callable(own) or getattr(own, "__func__", own) is methods[n]]:
        what = f"{named} has no method {', '.join(lacking)}"
        raise TypeError(f"{what}; implement {role.protocol.__name__} of quotahost.api")
    for name in (*methods, *_TOLD):
        method = getattr(plugin, name, None)
        if inspect.iscoroutinefunction(method) or inspect.isgeneratorfunction(method):
            raise TypeError(f"its {name}() is async def or has a yield, so a call runs nothing; make it a plain def")


def check_period(period: Any) -> float:
    """A task's period in seconds. Raises TypeError if it is no timedelta above 0."""
    seconds = period.total_seconds() if isinstance(period, timedelta) else 0.0
    if seconds <= 0:
        raise TypeError(f"its period is {period!r:.200}; make it a datetime.timedelta above 0")
    return seconds


# ---- the survey ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    """One entry point that :func:`survey` has found; ``error`` is "" if a broker could use the entry point."""

    role: str
    name: str
    distribution: str
    version: str
    error: str


def survey(before: Callable[[str], None]) -> list[Found]:
    """Import and list every installed entry point of every role, with the reason if a broker can't use it.

    ``before`` is called as by :func:`load`. A class that makes a method only in its constructor seems to lack it.
    The list also has the entry points of unknown ``quotahost*`` groups, which may be a misspelt group of a role.
    """
    of_roles = [(role, entry) for role in Role for entry in sorted(_offered(role), key=lambda each: each.name)]
    found = [_found(role, entry, _unusable(role, entry.name, before)) for role, entry in of_roles]
    groups = {role.group.rpartition(".")[2]: role.group for role in Role}
    for group in sorted(entry_points().groups - set(groups.values())):
        if group.lower().startswith("quotahost"):
            hint = meant(group.rpartition(".")[2], groups, f"there are {', '.join(groups.values())}", "quotahost.")
            error = f"{group} is not an entry point group of quotahost; {hint}"
            found += [_found("entry point", entry, error) for entry in entry_points(group=group)]
    return found


def _found(role: str, entry: EntryPoint, error: str) -> Found:
    package: Any = entry.dist
    return Found(role, entry.name, package.name, package.version, error)


def _unusable(role: Role, name: str, before: Callable[[str], None]) -> str:
    if not NAME.fullmatch(name):
        return "a property can't name this plugin; use letters, digits, - and _ in its name"
    try:
        plugin = load(role, name, before)
        with failing(role, name, "cannot check its settings"):
            settings_model(plugin)
        with failing(role, name, "does not implement its role"):
            if isinstance(plugin, type):
                _check_methods(role, plugin, plugin.__name__)
    except PluginError as failure:
        return failure.failed.split(" fails to import: ")[-1]  # the survey has the text before in its own columns
    return ""
