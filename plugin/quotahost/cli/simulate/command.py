"""The group ``quotahost simulate``, to which each kind of simulation is added."""

from __future__ import annotations

import typer

from quotahost.cli.simulate.disk import disk
from quotahost.cli.simulate.quota import quota

simulate = typer.Typer(no_args_is_help=True, help="Show what a setting would do, before anybody sets it.")
simulate.command()(disk)
simulate.command()(quota)
