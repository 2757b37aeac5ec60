"""Lists the plugins that are installed for this interpreter and checks that each can be loaded."""

from __future__ import annotations

from quotahost.broker.discovery.entry_points import survey
from quotahost.cli.console import Finding, Section, weak, wrong

COLUMNS = ("role", "name", "distribution", "version", "state")


def check_plugins() -> Section:
    """A row for each entry point. A broken one is weak here; it is wrong only where a property names it."""
    rows, findings = [], list[Finding]()
    for role, plugins in survey().items():
        for found in plugins:
            rows.append((role, found.name, found.distribution, found.version, found.error or "ok"))
            if found.error:
                findings.append(weak(f"{role} {found.name} of {found.distribution} is broken: {found.error}"))
    # quotahost's own plugins are entry points, too: where none is found, the distribution isn't installed.
    if not rows:
        remedy = "pip install quotahost there (a source tree on PYTHONPATH has no entry points)"
        findings.append(wrong("none found, not even quotahost's own", remedy))
    return Section("Plugins", findings, COLUMNS, rows)
