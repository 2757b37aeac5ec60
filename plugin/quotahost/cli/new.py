"""``quotahost new`` writes a plugin's package, with a test that passes, as a start for the plugin's author.

The package is a copy of the role's example in ``examples/`` with the new plugin's names, and a README with the
properties that the example's docstring lists. Names can be replaced, because an example uses them only as names.
"""

import keyword
import re
from collections.abc import Iterator
from enum import StrEnum
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Annotated, Final

import typer

from quotahost import api, model, testing, units
from quotahost.base.errors import QuotahostError
from quotahost.cli.console import say, writing

_FORM: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
_PROPERTY: Final = re.compile(r"^ {4}(client\.quota\.callback\.\S+)$", re.MULTILINE)
_README: Final = """# quotahost-{name}

A {role} of quotahost.

Test it without a broker, where quotahost and pytest are installed: `python -m pytest`.

Install it for the broker's Python: `PYTHON_OF_THE_BROKER -m pip install .`. Then list it with the `quotahost` beside \
that Python: `quotahost plugins`.

Name the plugin in `server.properties`, and set its own properties. `quotahost doctor server.properties` checks them, \
but only a broker builds the plugin. A list, such as tasks, replaces the default and the broker's present list: \
repeat what the broker needs of these. Then restart the broker:

```properties
{properties}
```
"""


class Kind(StrEnum):
    """A role, as one word of the command line."""

    SUPPLIER = "supplier"
    FACTOR_SOURCE = "factor-source"
    POLICY = "policy"
    TASK = "task"


_EXAMPLES: Final = {
    Kind.SUPPLIER: "off_peak",
    Kind.FACTOR_SOURCE: "busy_machine",
    Kind.POLICY: "two_steps",
    Kind.TASK: "show_load",
}


def new(
    role: Annotated[Kind, typer.Argument(help="The plugin's role.")],
    name: Annotated[str, typer.Argument(help="Its name in properties, such as my-quotas.")],
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where the package's folder is made.")] = Path(),
) -> None:
    """Write a plugin of your own: a package with a test that passes.

    No file is overwritten.
    """
    module = name.replace("-", "_")
    if not _FORM.fullmatch(name):
        raise QuotahostError(f"{name!r} can't be a plugin's name: write small letters and digits, such as my-quotas")
    _, entry, own = _forms(module)
    # The plugin's module or class must not replace one that the plugin or its test imports, and a broker accepts each
    # plugin name only once.
    ours = any(hasattr(package, own) for package in (api, model, testing, units))
    taken = find_spec(module) or any(entry_points(group=role.group, name=entry) for role in api.Role)
    if ours or taken or keyword.iskeyword(module) or keyword.iskeyword(own):
        raise QuotahostError(f"{name!r} can't be a plugin's name: Python, quotahost or a plugin has it; choose another")
    folder = directory / name
    if folder.exists():
        raise QuotahostError(f"{folder} exists already; choose another name, or another place by --directory")
    with writing(folder):
        # mkdir() fails if the folder exists, so nothing is ever overwritten.
        folder.mkdir(parents=True)
        for file, text in _files(role, module):
            (folder / file).write_text(text, encoding="utf-8")
    say(f"Wrote {folder}: {module}.py is the plugin, test_{module}.py its test.\n")
    say(f"Try it:              cd {quote(str(folder))} && python -m pytest, where quotahost and pytest are installed")
    say(f"Give it to a broker: {folder}/README.md")


def _files(role: Kind, module: str) -> Iterator[tuple[str, str]]:
    example, packaged = _EXAMPLES[role], Path(__file__).parents[1] / "examples"
    examples = packaged if packaged.is_dir() else Path(__file__).parents[3] / "examples"  # in a source tree
    for file in (f"{example}.py", f"test_{example}.py", "pyproject.toml"):
        text = (examples / example / file).read_text(encoding="utf-8")
        for theirs, ours in zip(_forms(example), _forms(module), strict=True):
            text, file = text.replace(theirs, ours), file.replace(theirs, ours)
        if file == f"{module}.py":
            properties, words = "\n".join(_PROPERTY.findall(text)), role.replace("-", " ")
            yield "README.md", _README.format(name=_forms(module)[1], role=words, properties=properties)
        yield file, text


def _forms(module: str) -> tuple[str, str, str]:
    """Return the name of a module, of its entry point, and of its class."""
    return module, module.replace("_", "-"), module.title().replace("_", "")
