"""The SQL and configuration files of the pipeline."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path


def sql(name: str, **fields: object) -> str:
    """The text of ``sql/NAME.sql`` with ``{field}`` filled in; the DataFrames' names stay, for ``spark.sql``."""
    text = _text(f"sql/{name}.sql")
    for field, value in fields.items():
        plain = str(value).replace("{", "{{").replace("}", "}}")  # spark.sql formats it once more
        text = text.replace("{" + field + "}", plain)
    return text


def path(name: str) -> Path:
    """Where a file of the package ``quotahost.pipeline`` lies."""
    return Path(str(files("quotahost.pipeline").joinpath(name)))


@cache
def _text(name: str) -> str:
    return path(name).read_text()
