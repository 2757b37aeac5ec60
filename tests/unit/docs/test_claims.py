"""Commands, options, properties, metrics, plugins and files that the documents name are there."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel
from typer.main import get_command

from quotahost.api import Role
from quotahost.broker.discovery import load, settings_model
from quotahost.cli.explain.explain import parser as explain
from quotahost.cli.main import app
from quotahost.cli.top.top import parser as top
from quotahost.metrics import CATALOGUE
from quotahost.pipeline.monitoring import Progress
from quotahost.settings.broker import REMOVED, Settings
from quotahost.settings.declaration import PREFIX, declared
from quotahost.settings.strimzi import PROPERTIES
from tests.unit.docs.test_documents import DOCUMENTS, ROOT, name_of

PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
COMMANDS: Final[dict[str, Any]] = get_command(app).commands  # type: ignore[attr-defined]
#: A group's commands are named with it: "simulate quota".
NAMED: Final = {
    f"{name} {own}".rstrip(): command
    for name, it in COMMANDS.items()
    for own, command in getattr(it, "commands", {"": it}).items()
}
OPTIONS: Final = {name: {"--help"}.union(*(each.opts for each in it.params)) for name, it in NAMED.items()} | {
    name: set(made._option_string_actions) for name, made in {"explain": explain(), "top": top()}.items()
}
#: Options of other programs that the documents name: kafka-configs.sh, kafka-topics.sh and the benchmarks.
OTHER_OPTIONS: Final = {"--add-config", "--delete-config", "--alter", "--runs", "--only", "--driver-memory"}
DECLARED: Final = {each.name for each in declared(Settings)}
KNOWN: Final = DECLARED | {each.name for each in PROPERTIES}
#: They begin with the same word as one of quotahost's properties: clients' and brokers' own.
KAFKAS: Final = {
    "max.message.bytes", "max.connections.per.ip", "max.in.flight", "max.in.flight.requests.per.connection",
}  # fmt: skip
METRICS: Final = {f"quotahost_{each.prometheus}{each.kind.value}" for each in CATALOGUE}
FOLDERS: Final = "bench|conf|demo|docs|examples|harness|java-shim|plugin|tests|tools"


def spans(document: Path) -> list[str]:
    """What stands in code type in the text, and each line of its blocks of shell commands."""
    text = document.read_text(encoding="utf-8")
    shell = re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    lines = [line.partition("#")[0].strip().removeprefix("$ ") for block in shell for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def section(name: str) -> type[BaseModel] | None:
    """The model of the own properties of the built-in plugin of this name."""
    for role in Role:
        if name in PROJECT["project"]["entry-points"][role.group]:
            return settings_model(load(role, name))
    return None


def exists(name: str) -> bool:
    """Whether there is a property, or a family of such properties, of this name."""
    if name in KNOWN or any(each.startswith(f"{name.removesuffix('.*')}.") for each in KNOWN):
        return True
    family = next((each for each in ("kafka.", "static.kafka.admin.") if name.startswith(each)), None)
    if family or not name.startswith("plugin."):
        return family is not None
    plugin, _, own = name.removeprefix("plugin.").partition(".")
    model = section(plugin)
    fields = model.model_fields.items() if model else ()
    return own in {field.alias or key.replace("_", "-") for key, field in fields}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_commands_and_options_that_they_name_are_there(document: Path) -> None:
    for span in spans(document):
        words = span.split() or [""]
        if Path(words[0]).name == "quotahost" and len(words) > 1:
            name = " ".join(words[1:3]) if hasattr(COMMANDS.get(words[1]), "commands") else words[1]
            assert name in OPTIONS, span
            known = OPTIONS[name]
        else:
            known = set().union(*OPTIONS.values(), OTHER_OPTIONS) if words[0].startswith("--") else set()
        wrong = [word for word in words if re.fullmatch(r"--[a-z-]+", word) and known and word not in known]
        assert wrong == [], f"{name_of(document)}: {span}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_properties_that_they_name_are_there(document: Path) -> None:
    first_words = {name.partition(".")[0] for name in KNOWN if "." in name}
    for span in spans(document):
        name = span.partition("=")[0].removeprefix(PREFIX)
        dotted = re.fullmatch(r"[a-z]+(\.[a-zA-Z0-9-]+)+(\.\*)?|[a-z]+\.\*", name)
        if not dotted or name.partition(".")[0] not in first_words or name in KAFKAS or "NAME" in name:
            continue
        if Path(name).suffix not in {".py", ".sql", ".java", ".sh", ".json", ".properties"}:
            tells_history = document.name in ("CHANGELOG.md", "upgrade.md")
            assert exists(name) or (tells_history and name in REMOVED), f"{name_of(document)} names {name}"


@pytest.mark.parametrize("document", [*DOCUMENTS, *sorted((ROOT / "conf").glob("*.yml"))], ids=name_of)
def test_metrics_that_they_name_are_there(document: Path) -> None:
    named = set(re.findall(r"\bquotahost_[a-z0-9_]+(?!\w|_)", document.read_text(encoding="utf-8")))
    assert {each for each in named if not each.startswith("quotahost_pipeline")} <= METRICS


def test_metrics_of_the_pipeline_that_its_page_names_are_there() -> None:
    text = (ROOT / "docs/pipeline.md").read_text(encoding="utf-8")
    sentence = re.search(r"all beginning with `quotahost_pipeline_`:(.*?)\.\n", text, re.DOTALL)
    assert sentence
    described = {f"{each.name}{'_total' * (each.type == 'counter')}" for each in Progress().registry.collect()}
    # What stands in brackets are values of the label query, and labels.
    named = re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", sentence.group(1), flags=re.DOTALL))
    assert {f"quotahost_pipeline_{each}" for each in named} == described


@pytest.mark.parametrize("role", list(Role), ids=lambda role: role.group)
def test_the_table_of_roles_lists_the_plugins_that_are_built_in(role: Role) -> None:
    text = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {role} \| `{role.group}` \|.*\|(.*)\|$", text, re.MULTILINE)
    assert set(re.findall(r"`([a-z-]+)`", row)) == set(PROJECT["project"]["entry-points"][role.group])


def test_the_map_names_every_package_and_no_other() -> None:
    """Of Python in docs/architecture.md, "Layers"; of Java in the sentence below it."""
    text = (
        (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## Layers")[2].partition("## Walk 1")[0]
    )
    table = "\n".join(re.findall(r"^\| \d+ \| (.*?) \|", text, re.MULTILINE))
    python = {path.stem for path in (ROOT / "plugin/quotahost").iterdir() if path.suffix in ("", ".py")}
    assert set(re.findall(r"`(\w+)`", table)) == {name for name in python if not name.startswith("_")}
    java = ROOT / "java-shim/src/main/java/org/quotahost"
    sentence = text.rpartition("Java, in ")[2].partition(": ")[2]
    assert set(re.findall(r"`(\w+)`", sentence)) == {path.name for path in java.iterdir() if path.is_dir()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_files_that_they_name_are_there(document: Path) -> None:
    named = [span.rstrip("/") for span in spans(document) if re.fullmatch(rf"(?:{FOLDERS})/[\w./-]*", span)]
    assert [path for path in named if not (ROOT / path).exists()] == []
