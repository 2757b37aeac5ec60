"""The SQL and the configuration files of the pipeline, which lie in the package beside its modules."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path


def sql(name: str, **fields: object) -> str:
    """The text of ``sql/NAME.sql`` with each ``{field}`` filled in; ``spark.sql`` fills in the names of DataFrames."""
    text = _text(f"sql/{name}.sql")
    # Not str.format: the text has fields that are left for spark.sql.
    for field, value in fields.items():
        plain = str(value).replace("{", "{{").replace("}", "}}")  # spark.sql formats the text once more
        text = text.replace("{" + field + "}", plain)
    return text


def path(name: str) -> Path:
    """The path of a file of the package ``quotahost.pipeline``."""
    return Path(str(files("quotahost.pipeline").joinpath(name)))


@cache
def _text(name: str) -> str:
    return path(name).read_text()
