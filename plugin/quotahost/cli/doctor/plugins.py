"""The plugins installed for this interpreter."""

from __future__ import annotations

from quotahost.cli.console import Level, Section
from quotahost.discovery.entry_points import survey

COLUMNS = ("role", "name", "distribution", "version", "state")


def check_plugins() -> Section:
    """Every entry point; a broken one is weak here, and wrong only where it is configured."""
    section = Section("Plugins", columns=COLUMNS)
    for role, plugins in survey().items():
        for found in plugins:
            row = (role, found.name, found.distribution, found.version, found.error or "ok")
            section.rows.append(row)
            if found.error:
                section.add(
                    Level.WEAK, f"{row[0]} {found.name} of {found.distribution} is broken: {found.error}"
                )
    if not section.rows:
        remedy = "pip install quotahost there (a source tree on PYTHONPATH has no entry points)"
        section.add(Level.WRONG, "none found, not even quotahost's own", remedy)
    return section
