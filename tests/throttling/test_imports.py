"""The import contract of ``quotahost.throttling`` names every other module."""

from __future__ import annotations

import pkgutil
import tomllib
from pathlib import Path

import quotahost

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def test_throttling_may_import_no_module_of_quotahost_but_the_model() -> None:
    contracts = PROJECT["tool"]["importlinter"]["contracts"]
    (contract,) = [c for c in contracts if c.get("source_modules") == ["quotahost.throttling"]]
    modules = {f"quotahost.{module.name}" for module in pkgutil.iter_modules(quotahost.__path__)}
    others = modules - {"quotahost.model", "quotahost.throttling"}
    assert {name for name in contract["forbidden_modules"] if name.startswith("quotahost.")} == others
