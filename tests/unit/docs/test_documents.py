"""Tests that the documents fit the code: examples work, named things exist, and tests prove all requirements."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from quotahost.api import Role
from quotahost.broker.discovery import load, settings_model
from quotahost.broker.metrics import CATALOGUE
from quotahost.cli.explain.explain import parser as explain
from quotahost.cli.main import app
from quotahost.cli.top.top import parser as top
from quotahost.pipeline.monitoring import Progress
from quotahost.settings.broker import REMOVED, Settings
from quotahost.settings.declaration import PREFIX, declared
from quotahost.settings.strimzi import PROPERTIES
from tools.conformance import differences, table
from tools.figures import figures
from tools.requirements import SOURCES, contradictions, documents, is_there, proofs
from tools.tables import TABLES, renewed

ROOT: Final = Path(__file__).parents[3]
DOCUMENTS: Final = {
    path: path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), ROOT / "conf/README.md", ROOT / "containers/README.md", *ROOT.glob("docs/**/*.md"))
}
PLUGINS: Final = ROOT / "docs/plugins.md"
PROJECT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
MAKEFILE: Final = (ROOT / "Makefile").read_text(encoding="utf-8")
QUOTAHOST: Final = get_command(app)
COMMANDS: Final[dict[str, Any]] = QUOTAHOST.commands  # type: ignore[attr-defined]
#: The name of a group's command includes the group: "simulate quota".
NAMED: Final = {
    f"{name} {own}".rstrip(): command
    for name, it in COMMANDS.items()
    for own, command in getattr(it, "commands", {"": it}).items()
}
OPTIONS: Final = {name: {"--help"}.union(*(each.opts for each in it.params)) for name, it in NAMED.items()} | {
    name: set(made._option_string_actions) for name, made in {"explain": explain(), "top": top()}.items()
}
OPTIONS.update({option: {option} for each in QUOTAHOST.params for option in each.opts})  # quotahost --version
#: Options of other programs that the documents name: kafka-configs.sh, kafka-topics.sh and the benchmarks.
OTHER_OPTIONS: Final = {"--add-config", "--delete-config", "--alter", "--runs", "--only", "--driver-memory"}
DECLARED: Final = {each.name for each in declared(Settings)}
KNOWN: Final = DECLARED | {each.name for each in PROPERTIES}
#: Kafka's own properties of clients and brokers that begin with the same word as a property of quotahost's.
KAFKAS: Final = {
    "max.message.bytes", "max.connections.per.ip", "max.in.flight", "max.in.flight.requests.per.connection",
    "max.block.ms", "max.poll.interval.ms", "max.poll.records",
}  # fmt: skip
METRICS: Final = {f"quotahost_{each.prometheus}{each.kind}" for each in CATALOGUE}
FOLDERS: Final = "bench|conf|demo|docs|examples|harness|java-shim|plugin|tests|tools"
TARGETS: Final = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```(?:{language})\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def anchor_of(heading: str) -> str:
    """The anchor that Git hosts make of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    return {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)}


def spans(text: str) -> list[str]:
    """The inline code in the text, and each line of its blocks of shell commands."""
    shell = "\n".join(blocks(text, "sh|console"))
    lines = [line.partition("#")[0].strip().removeprefix("$ ") for line in shell.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


SPANS: Final = {document: spans(text) for document, text in DOCUMENTS.items()}
EACH_SPAN: Final = [(document, span) for document, found in SPANS.items() for span in found]


# ---- examples in the documents ----


@pytest.mark.parametrize("document", TABLES, ids=name_of)
def test_tables_are_those_of_the_code(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert renewed(document, text) == text, "the tables are outdated: run `make tables`"


def test_the_plugins_that_they_show_keep_the_contract_by_the_checks_that_they_show() -> None:
    shown: dict[str, Any] = {}
    exec(compile("\n".join(blocks(DOCUMENTS[PLUGINS], "python")), str(PLUGINS), "exec", dont_inherit=True), shown)
    tests = [name for name in shown if name.startswith("test_")]
    assert len(tests) == 2
    for name in tests:
        shown[name]()


def test_the_properties_that_they_show_are_understood() -> None:
    known = (PREFIX, "authorizer.class.name=org.quotahost.QuotaFence", "quota.window.num=2")
    for document, text in DOCUMENTS.items():
        for block in blocks(text, "properties"):  # each block alone: two blocks may name two suppliers
            lines = [line for line in block.splitlines() if line]
            Settings.from_properties(dict(line.split("=", 1) for line in lines))
            assert all(line.startswith(known) for line in lines), name_of(document)


# ---- names in the documents ----


def test_files_and_modules_that_they_name_are_there() -> None:
    roots = (ROOT, ROOT / "plugin/quotahost", ROOT / "java-shim/src/main/java/org/quotahost")
    for document, text in DOCUMENTS.items():
        files = [span.rstrip("/") for span in SPANS[document] if re.fullmatch(rf"(?:{FOLDERS})/[\w./-]*", span)]
        assert [path for path in files if not (ROOT / path).exists()] == [], name_of(document)
        modules = set(re.findall(r"`([a-z_]+/[\w/]*[\w]+\.(?:py|sql|java))`", text))
        assert [path for path in modules if not any((root / path).exists() for root in roots)] == [], name_of(document)


def test_files_and_modules_that_comments_name_are_there() -> None:
    """Comments of one language name files of the other one, and no tool renames both together."""
    java, python = ROOT / "java-shim/src/main/java", ROOT / "plugin/quotahost"
    sources = [*java.rglob("*.java"), *python.rglob("*.py")]
    folders = (java.parent, *(ROOT / name for name in ("harness", "tests", "tools")))
    there = {path.name for path in (*sources, *(path for folder in folders for path in folder.rglob("*.py")))}
    for path in sources:
        text = path.read_text("utf-8")
        named = re.findall(r"(?<![\w.])([A-Z]\w+\.java|[a-z_]+\.py)\b", text)
        assert [name for name in named if name not in there] == [], name_of(path)
        for module in re.findall(r"(?:\(|``)quotahost\.([a-z_]+\.[a-z_.]+)(?:\)|``)", text):
            place = python / module.replace(".", "/")
            assert place.is_dir() or place.with_suffix(".py").exists(), f"{name_of(path)} names a missing {module}"


def test_commands_and_options_that_they_name_are_there() -> None:
    for document, span in EACH_SPAN:
        words = span.split() or [""]
        if Path(words[0]).name == "quotahost" and len(words) > 1:
            is_group = hasattr(COMMANDS.get(words[1]), "commands")
            if is_group and len(words) == 2:
                continue
            name = " ".join(words[1:3]) if is_group else words[1]
            assert name in OPTIONS, span
            known = OPTIONS[name]
        else:
            known = set().union(*OPTIONS.values(), OTHER_OPTIONS) if words[0].startswith("--") else set()
        wrong = [word for word in words if re.fullmatch(r"--[a-z-]+", word) and known and word not in known]
        assert wrong == [], f"{name_of(document)}: unknown options {wrong} in {span}"


def exists(name: str) -> bool:
    """Whether there is a property, or a family of such properties, of this name."""
    if name in KNOWN or any(each.startswith(f"{name.removesuffix('.*')}.") for each in KNOWN):
        return True
    family = next((each for each in ("kafka.", "static.kafka.admin.") if name.startswith(each)), None)
    if family or not name.startswith("plugin."):
        return family is not None
    plugin, _, own = name.removeprefix("plugin.").partition(".")
    roles = [role for role in Role if plugin in PROJECT["project"]["entry-points"][role.group]]
    models = filter(None, (settings_model(load(role, plugin)) for role in roles[:1]))  # of the plugin's own properties
    return own in {of.alias or key.replace("_", "-") for model in models for key, of in model.model_fields.items()}


def test_properties_that_they_name_are_there() -> None:
    first_words = {name.partition(".")[0] for name in KNOWN if "." in name}
    for document, span in EACH_SPAN:
        name = span.partition("=")[0].removeprefix(PREFIX)
        dotted = re.fullmatch(r"[a-z]+(\.[a-zA-Z0-9-]+)+(\.\*)?|[a-z]+\.\*", name)
        if not dotted or name.partition(".")[0] not in first_words or name in KAFKAS or "NAME" in name:
            continue
        if Path(name).suffix not in {".py", ".sql", ".java", ".sh", ".json", ".properties"}:
            tells_history = document.name in ("CHANGELOG.md", "upgrade.md")
            assert exists(name) or (tells_history and name in REMOVED), f"{name_of(document)} names an unknown {name}"


def test_metrics_that_they_name_are_there() -> None:
    texts = [*DOCUMENTS.values(), *(path.read_text(encoding="utf-8") for path in (ROOT / "conf").glob("*.yml"))]
    named = set(re.findall(r"\bquotahost_[a-z0-9_]+(?!\w|_)", "\n".join(texts)))
    assert {each for each in named if not each.startswith("quotahost_pipeline")} <= METRICS


def test_metrics_of_the_pipeline_that_its_page_names_are_there() -> None:
    text = DOCUMENTS[ROOT / "docs/pipeline.md"]
    sentence = re.search(r"all beginning with `quotahost_pipeline_`:(.*?)\.\n", text, re.DOTALL)
    assert sentence
    described = {f"{each.name}{'_total' * (each.type == 'counter')}" for each in Progress().registry.collect()}
    # The text in brackets has labels, and values of the label query.
    named = re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", sentence.group(1), flags=re.DOTALL))
    assert {f"quotahost_pipeline_{each}" for each in named} == described


def test_the_table_of_roles_lists_the_plugins_that_are_built_in() -> None:
    for role in Role:
        (row,) = re.findall(rf"^\| {role} \| `{role.group}` \|.*\|(.*)\|$", DOCUMENTS[PLUGINS], re.MULTILINE)
        assert set(re.findall(r"`([a-z-]+)`", row)) == set(PROJECT["project"]["entry-points"][role.group])


def test_the_map_names_every_package_and_no_other() -> None:
    """Python's packages are in docs/architecture.md, "Layers"; Java's packages are in the sentence below."""
    text = DOCUMENTS[ROOT / "docs/architecture.md"].partition("## Layers")[2].partition("## Walk 1")[0]
    table = "\n".join(re.findall(r"^\| \d+ \| (.*?) \|", text, re.MULTILINE))
    python = {path.stem for path in (ROOT / "plugin/quotahost").iterdir() if path.suffix in ("", ".py")}
    assert set(re.findall(r"`(\w+)`", table)) == {name for name in python if not name.startswith("_")}
    java = ROOT / "java-shim/src/main/java/org/quotahost"
    sentence = text.rpartition("Java, in ")[2].partition(": ")[2]
    assert set(re.findall(r"`(\w+)`", sentence)) == {path.name for path in java.iterdir() if path.is_dir()}


# ---- make ----


def test_targets_of_make_that_are_named_are_there() -> None:
    target = re.compile(r"\bmake ((?:test|demo|bench|build|lint|format|tables|docs|clean|wheel|help)[\w-]*)")
    for document in DOCUMENTS:
        assert set(target.findall("\n".join(SPANS[document]))) <= TARGETS, name_of(document)
    for text in (MAKEFILE, (ROOT / ".ci/run").read_text(encoding="utf-8")):  # these have no inline code
        assert {"test"} <= set(target.findall(text)) <= TARGETS


def test_make_test_leaves_out_what_other_targets_run_and_the_documents_tell() -> None:
    targets = {"driver": "test-pipeline", "long": "test-long", "clients": "test-clients"}
    assert set(re.findall(r"not (\w+)", PROJECT["tool"]["pytest"]["ini_options"]["addopts"])) == targets.keys()
    for marker, target in targets.items():
        (folder,) = re.findall(rf"^{target}:.*\n\t.* -m {marker} (\S+)$", MAKEFILE, re.M)
        tests = ROOT.glob("tests/**/test_*.py")
        marked = [path for path in tests if re.search(rf"mark\.{marker}\b", path.read_text("utf-8"))]
        assert all(path.is_relative_to(ROOT / folder) for path in marked), "a make target runs each marked test"
        for document in ("README.md", "CONTRIBUTING.md"):
            assert f"make {target}" in SPANS[ROOT / document], f"{document} says what make test leaves out"


# ---- requirements ----

REQUIREMENTS = {key: of for document in documents().values() for key, of in document.requirements.items()}


def test_every_requirement_is_proven_by_a_test_and_no_other_is_named() -> None:
    assert proofs().keys() == REQUIREMENTS.keys()
    commands = {proof.command for tests in proofs().values() for proof in tests}
    assert commands <= {"", "make test-long", "make test-pipeline", "make test-clients"}
    assert "(`make test-long`)" in table(), "the table has the command of a test that make test leaves out"


def test_a_difference_says_all_that_a_reader_needs() -> None:
    for key, each in REQUIREMENTS.items():
        assert not each.differs or all((each.section, each.quote, each.today, each.why)), key


def test_a_contradiction_is_between_documents_and_names_tests_that_there_are() -> None:
    for each in contradictions():
        assert len(each.between) == 2
        assert set(each.between) <= documents().keys()
        assert all((each.one, each.other, each.here))
        assert [test for test in each.tests if not is_there(test)] == [], each.one


@pytest.mark.proves("kip-599.burst-by-default")
def test_the_numbers_are_those_that_the_documents_state_or_that_the_tests_assert() -> None:
    numbers = figures()
    stated = {
        "kip_13_delay_s": 2, "kafka_delay_longest_s": 3, "kafka_delay_shortest_s": 2.001, "kafka_window_s": 12,
        "samples": 100, "bucket_debt": -60, "bucket_wait_s": 12, "bucket_admits_s": 12, "default_burst": 55,
        "default_wait_s": 101, "v15_wait_s": 12, "diff_admits_s": 12, "v15_admits_s": 11, "v15_rate": 4.984,
        "v15_long_run": 1.98, "misplaced": -94.4,
    }  # fmt: skip
    assert numbers == pytest.approx(stated, rel=1e-3)


def test_every_number_is_used_and_none_is_left_as_a_name() -> None:
    text = "".join(file.read_text(encoding="utf-8") for file in SOURCES.glob("*.toml"))
    assert set(re.findall(r"\{(\w+):", text)) == figures().keys()
    assert not re.search(r"\{\w+:", differences())
