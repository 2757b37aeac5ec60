"""Whether from_json has misread a snapshot, in SQL: it takes 7 for the text "7", and null for a field left out.

Brokers refuse both (``quotahost.records.codec`` is strict), and so must the pipeline: otherwise a broker that reads the
snapshots and one that reads the pipeline's records would know different volumes. A VARIANT keeps what the JSON said.
"""

from __future__ import annotations

from typing import Final

#: What from_json makes of a number, a boolean, an object or an array begins so; few names do. For each line of a text.
_NO_TEXT: Final = r'(?m)^(["{\\[0-9+-]|(true|false|NaN|INF|Infinity)$)'
_SNAPSHOT: Final = (
    "STRUCT<clusterId: VARIANT, brokerId: VARIANT, offlineLogDirs: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, "
    "volumes: ARRAY<STRUCT<volumeName: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, topics: ARRAY<VARIANT>>>, "
    "_corrupt: STRING>"
)


def suspect(s: str, json: str) -> str:
    """Whether a snapshot may be misread, by a look that costs little; few good records are suspects.

    Args:
        s: an SQL expression for what from_json has read, as ``volumes.parse.SNAPSHOT``.
        json: one for the text that it has read.
    """
    # A search from character to character took 15 % of a backlog, so the commonest records are spared most of it.
    # All broker ids look like numbers, so it takes the one field's name and the quote that has to follow it.
    first = f"startswith({json}, concat('{{\"brokerId\":\"', {s}.brokerId, '\"'))"
    later = f"contains(substring({json}, 12), 'brokerId')"
    quoted = f'contains({json}, \'"brokerId":"\') OR contains({json}, \'"brokerId": "\')'
    plain = f"({quoted}) AND locate('brokerId', {json}, locate('brokerId', {json}) + 1) = 0"
    topics = f"array_max({s}.volumes.topics) IS NOT NULL AND {_like(f'flatten(array_compact({s}.volumes.topics))')}"
    names = f"{s}.volumes.volumeName"
    return (
        f"contains({json}, 'null') OR contains({json}, '\\\\u') "
        f"OR CASE WHEN {first} THEN {later} ELSE NOT ({plain}) END "
        f"OR coalesce({s}.clusterId RLIKE '{_NO_TEXT}', FALSE) "
        # Paths begin with a slash, which comes right before the digits.
        f"OR (array_min({names}) < '/' OR array_max({names}) >= '0') AND {_like(names)} "
        f"OR {topics} OR {_like(f'{s}.offlineLogDirs')} "
    )


def _like(texts: str) -> str:
    """Whether one of the texts looks like what from_json makes of something else."""
    return f"coalesce(array_join({texts}, '\\n') RLIKE '{_NO_TEXT}', FALSE)"


def misread(json: str) -> str:
    """``schema`` or ``limit`` for a snapshot that from_json has misread, else null. It reads the whole text once more.

    Args:
        json: an SQL expression for the text.
    """
    limits = [f"{side}Limit" for side in ("soft", "hard")]
    of_volume = " OR ".join(
        [_other("v.volumeName"), f"coalesce({_no_texts('v.topics')}, FALSE)", *(_null(f"v.{each}") for each in limits)]
    )
    schema = " OR ".join(
        ["t._corrupt IS NOT NULL", _other("t.clusterId"), _other("t.brokerId"), _null("t.offlineLogDirs"),
         f"coalesce({_no_texts('CAST(t.offlineLogDirs AS ARRAY<VARIANT>)')}, FALSE)",
         f"coalesce(exists(t.volumes, v -> {of_volume}), FALSE)"]
    )  # fmt: skip
    limit = " OR ".join(_null_in(f"t.{each}") for each in limits)
    of_volumes = " OR ".join(_null_in(f"v.{each}") for each in limits)
    read = f"from_json({json}, '{_SNAPSHOT}', map('columnNameOfCorruptRecord', '_corrupt'))"
    return (
        f"transform(array({read}), t -> CASE WHEN {schema} THEN 'schema' "
        f"WHEN {limit} OR coalesce(exists(t.volumes, v -> {of_volumes}), FALSE) THEN 'limit' END)[0]"
    )


def _other(value: str) -> str:
    """Whether a VARIANT is there and no text."""
    return f"coalesce(schema_of_variant({value}) <> 'STRING', FALSE)"


def _null(value: str) -> str:
    return f"coalesce(is_variant_null({value}), FALSE)"


def _no_texts(values: str) -> str:
    return f"exists({values}, x -> {_other('x')})"


def _null_in(limit: str) -> str:
    """Whether a limit's type or level is null."""
    return " OR ".join(_null(f"try_variant_get({limit}, '$.{each}', 'variant')") for each in ("type", "level"))
