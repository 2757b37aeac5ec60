"""The catalogue of metrics: no name stands twice, and no code shows a number that is not in it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import quotahost
from quotahost.metrics import CATALOGUE, Kind

KINDS = {(metric.type, metric.attribute): metric.kind for metric in CATALOGUE}
METHODS = {"gauge": Kind.GAUGE, "count": Kind.COUNTER}


def shown() -> Iterator[tuple[str, tuple[str, str], Kind]]:
    """Place, type and attribute, and kind of each number that the package shows by constant names."""
    package = Path(quotahost.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 3:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            type, attribute = node.args[0], node.args[2]
            if called in METHODS and isinstance(type, ast.Constant) and isinstance(attribute, ast.Constant):
                place = f"{path.relative_to(package)}:{node.lineno}"
                yield place, (str(type.value), str(attribute.value)), METHODS[called]


def test_every_number_that_is_shown_stands_in_the_catalogue_with_its_kind() -> None:
    found = list(shown())
    assert len(found) > 20
    assert [(place, name) for place, name, kind in found if KINDS.get(name) is not kind] == []


def test_no_bean_and_no_prometheus_name_stands_twice() -> None:
    assert len(KINDS) == len(CATALOGUE) == len({metric.prometheus for metric in CATALOGUE})
