"""``quotahost new``: the command."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from quotahost.api import Role
from quotahost.cli.new.writing import Names, write


class Kind(StrEnum):
    """A role, as one word of the command line."""

    SUPPLIER = "supplier"
    FACTOR_SOURCE = "factor-source"
    POLICY = "policy"
    TASK = "task"

    @property
    def role(self) -> Role:
        """The role."""
        return Role[self.name]


def new(
    role: Annotated[Kind, typer.Argument(help="What the plugin is.")],
    name: Annotated[str, typer.Argument(help="Its name in properties, such as my-quotas.")],
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where the package's folder is made.")] = Path(),
) -> None:
    """Write a plugin of your own: a package with its test, which passes as it stands.

    It overwrites nothing.
    """
    names = Names.of(name)
    folder = write(role.role, names, directory)
    typer.echo(f"Wrote {folder}: {names.module}.py is the plugin, test_{names.module}.py its test.\n")
    typer.echo(f"Try it:              cd {folder} && python -m pytest")
    typer.echo(f"Give it to a broker: {folder}/README.md")
