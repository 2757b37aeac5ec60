"""Fills in the templates of a role with the names of the new plugin."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from quotahost.api import Role
from quotahost.broker.discovery.entry_points import survey
from quotahost.cli.console import writing
from quotahost.errors import QuotahostError

_FORM: Final = re.compile(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*")
#: An import of the new module would find another one, or keep others from finding theirs.
_TAKEN: Final = sys.stdlib_module_names | {"quotahost", "pytest", "pydantic", "jpype", "tests"}
_PROPERTY: Final = re.compile(r"^ {4}(client\.quota\.callback\.\S+)$", re.MULTILINE)
#: What one role answers in the properties file, where the others of it stay.
_LINES: Final = {
    Role.SUPPLIER: "supplier={name},client-quotas,static",
    Role.FACTOR_SOURCE: "factor.source={name}",
    Role.POLICY: "policy={name}",
    Role.TASK: "tasks={name}",
}


@dataclass(frozen=True, slots=True)
class Names:
    """One name in its four forms.

    Attributes:
        folder: as it was given: my_quotas.
        name: the entry point's: my-quotas.
        module: my_quotas.
        class_name: MyQuotas.
    """

    folder: str
    name: str
    module: str
    class_name: str

    @classmethod
    def of(cls, given: str) -> Names:
        """The forms of a name.

        Raises:
            QuotahostError: it can't be a module's name, or is one that Python or quotahost has.
        """
        words = re.split("[-_]", given)
        module = "_".join(words)
        if not _FORM.fullmatch(given):
            raise QuotahostError(
                f"{given!r} can't be a plugin's name: write small letters and digits, such as my-quotas"
            )
        if keyword.iskeyword(module) or module in _TAKEN:
            raise QuotahostError(
                f"{given!r} can't be a plugin's name: Python has a module of this name; choose another"
            )
        return cls(given, "-".join(words), module, "".join(word.capitalize() for word in words))


def write(role: Role, names: Names, directory: Path) -> Path:
    """Write the package of a plugin below ``directory``; the folder that was made.

    Raises:
        QuotahostError: there is a plugin of that name, or a folder; or it can't be written.
    """
    if any(names.name == found.name for found in survey()[role]):
        raise QuotahostError(f"there is a {role} {names.name} already; choose another name")
    folder = directory / names.folder
    with writing(folder):
        # Only a folder that is made here is written to, so nothing is ever overwritten.
        folder.mkdir(parents=True)
        for file, text in _files(role, names):
            (folder / file).write_text(text, encoding="utf-8")
    return folder


def _files(role: Role, names: Names) -> Iterator[tuple[str, str]]:
    templates = files("quotahost.cli.new") / "templates"
    kind = role.value.replace(" ", "_")
    words = {
        "name": names.name,
        "module": names.module,
        "class_name": names.class_name,
        "role": role.value,
        "check": f"check_{kind}",
        "group": role.group,
        "line": _LINES[role].format(name=names.name),
    }
    own = {f"{names.module}.py": f"{kind}.py", f"test_{names.module}.py": f"test_{kind}.py"}
    for file, template in {**own, "pyproject.toml": "pyproject.toml", "README.md": "README.md"}.items():
        text = Template((templates / f"{template}.template").read_text(encoding="utf-8")).substitute(words)
        # The plugin's text comes first, and says its properties.
        words.setdefault("properties", "\n".join(_PROPERTY.findall(text)))
        yield file, text
