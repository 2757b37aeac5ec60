"""``quotahost plugins``: what is installed for this Python, and whether it can be loaded. Doctor shows it, too."""

from typing import Final

import typer

from quotahost.broker.discovery import survey
from quotahost.cli.console import Section, console, show, table, weak, wrong

_PLUGINS: Final = ("role", "name", "distribution", "version", "state")


def plugins() -> None:
    """Show every plugin installed for this Python, and whether it can be loaded."""
    section, screen = check_plugins(), console()
    screen.print(table(section.columns, section.rows))
    if section.is_wrong:
        show([section], screen)
        raise typer.Exit(1)


def check_plugins() -> Section:
    """A row for each entry point. A broken one is weak here; it is wrong only where a property names it."""
    found = survey()
    rows = [(entry.role, entry.name, entry.distribution, entry.version, entry.error or "ok") for entry in found]
    findings = []
    # Two packages that offer the same name are one finding.
    for entry in {(each.role, each.name): each for each in found if each.error}.values():
        remedy = "" if "; " in entry.error else "mend or uninstall it"  # some have one of their own
        findings.append(weak(f"{entry.role} {entry.name} of {entry.distribution} is broken: {entry.error}", remedy))
    # quotahost's own plugins are entry points, too: where none is found, the distribution isn't installed.
    if not rows:
        remedy = "pip install quotahost there (a source tree on PYTHONPATH has no entry points)"
        findings.append(wrong("none found, not even quotahost's own", remedy))
    return Section("Plugins", findings, _PLUGINS, rows)
