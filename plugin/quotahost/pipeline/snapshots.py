"""The snapshots' parser turns Kafka's rows into columns; the column ``error`` has the reason of a refused record.

1. ``sql/parse.sql`` reads each record with Spark's from_json, because Python for each row would be far too slow.
2. If from_json rejects a record, the query rewrites the JSON as brokers read it and tries again (:func:`plainly`).
3. If from_json may have misread a record, the query reads the record again as VARIANTs, which keep the JSON's types
   (:func:`misread`). A cheap check (:func:`suspect`) spares most records this step.
4. The query then applies the rules of :mod:`quotahost.records.codec` and :mod:`quotahost.records.snapshot`, in order.

Brokers refuse broken JSON and values of another type, and so must the pipeline: otherwise a broker that reads the
snapshots and a broker that reads the pipeline's records would know different volumes. tests/pipeline/test_snapshots.py
makes odd JSON for both; docs/internals.md ("What JSON is") lists what from_json and brokers read differently.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame

from quotahost.model.volumes import MAX_TOPICS
from quotahost.pipeline.frames import seen_at, sql
from quotahost.records.codec import MAX_EXACT
from quotahost.records.fields import DATE_TIME, MAX_NAME, TOPIC
from quotahost.records.snapshot import MAX_BYTES, MAX_VOLUMES

#: A limit as in the record; both fields are null if there is no limit.
LIMIT: Final = "STRUCT<type: STRING, level: BIGINT>"
_VOLUME: Final = (
    f"STRUCT<volumeName: STRING, capacity: BIGINT, consumed: BIGINT, softLimit: {LIMIT}, hardLimit: {LIMIT}, "
    "topics: ARRAY<STRING>>"
)
#: The fields that the pipeline reads, as ``quotahost.records.snapshot`` reads them; other fields are ignored.
SNAPSHOT: Final = (
    "STRUCT<schemaVersion: BIGINT, clusterId: STRING, brokerId: STRING, snapshotAt: STRING, ageMs: BIGINT, "
    f"softLimit: {LIMIT}, hardLimit: {LIMIT}, volumes: ARRAY<{_VOLUME}>, offlineLogDirs: ARRAY<STRING>, "
    # This is the list's JSON, because a wrong list must not make the record wrong (quotahost.records.snapshot).
    "budgets: STRING, _corrupt: STRING>"
)
#: No snapshot is older than this: if Kafka dates a record earlier, a machine has lost its clock.
OLDEST: Final = "2026-01-01 00:00:00"


def parse(
    raw: DataFrame, clusters: Mapping[str, str] | None = None, validity: timedelta = timedelta(minutes=1)
) -> DataFrame:
    """Return Kafka's rows as snapshots, with Spark's own functions; ``raw`` is a batch or a stream.

    ``clusters`` maps each topic to its cluster. A record that names another cluster is refused: a client that may write
    to one cluster's topic must not speak for another cluster. If ``clusters`` is missing, any cluster is accepted.

    Returns:
        topic, partition, offset, timestamp, value; ``broker`` (the key); ``at`` (snapshotAt); ``seen``, the time when
        the volumes were read, by Kafka's clock (``quotahost.records.fields``), which orders and ages the snapshots;
        ``removed``, true for a tombstone; ``cluster``, the record's own, else its topic's, null if neither is known;
        ``s``, the snapshot in the type SNAPSHOT, null for a tombstone; ``error``, null for a good record, else a
        broker's reason to refuse it, or ``time`` (Kafka dates it before OLDEST), or ``cluster`` (not its topic's).
    """
    of = list((clusters or {}).items())
    args = {f"topic{n}": topic for n, (topic, _) in enumerate(of)} | {f"id{n}": name for n, (_, name) in enumerate(of)}
    # This is a CASE of literals, because Spark might parse a map in JSON again for each row.
    bound = f"CASE topic {' '.join(f'WHEN :topic{n} THEN :id{n}' for n in range(len(of)))} END"
    text = sql(
        "parse",
        bound=bound if of else "CAST(NULL AS STRING)",
        seen_at=seen_at("s.ageMs", validity),
        plainly=plainly("text"),
        is_json=is_json("text"),
        json_options=_OF_WHOLE_NUMBERS,
        suspect=suspect("s", "text"),
        misread=misread("text"),
        schema=SNAPSHOT,
        date_time=DATE_TIME,
        topic_name=TOPIC,
        bad_soft=_bad_limit("s.softLimit"),
        bad_hard=_bad_limit("s.hardLimit"),
        bad_soft_of_volume=_bad_limit("v.softLimit"),
        bad_hard_of_volume=_bad_limit("v.hardLimit"),
        max_bytes=MAX_BYTES,
        max_volumes=MAX_VOLUMES,
        max_name=MAX_NAME,
        max_topics=MAX_TOPICS,
        oldest=OLDEST,
    )
    return raw.sparkSession.sql(text, args=args, raw=raw)


def _bad_limit(limit: str) -> str:
    """Return SQL for whether a limit lacks its type or level, or has a wrong one; ``{}`` stands for no limit."""
    return (
        f"coalesce(({limit}.type IS NULL) <> ({limit}.level IS NULL) OR {limit}.level < 0 "
        f"OR {limit}.type NOT IN ('ConsumedBytes', 'MinFreeBytes', 'MinFreePercentage') "
        f"OR ({limit}.type = 'MinFreePercentage' AND {limit}.level > 100), FALSE)"
    )


# ---- JSON ------------------------------------------------------------------------------------------

#: Brokers read JSON with jiter (pydantic's parser), so from_json gets its bounds: 201 levels, and 4,300 digits.
_LIKE_JITER: Final = "'allowSingleQuotes', 'false', 'maxNumLen', '4300', 'maxNestingDepth'"
OPTIONS: Final = f"map({_LIKE_JITER}, '201', 'columnNameOfCorruptRecord', '_corrupt')"
# For types without a DOUBLE. Brokers accept NaN and Infinity, but not INF, in fields that they ignore: see plainly().
_OF_WHOLE_NUMBERS: Final = OPTIONS.replace("map(", "map('allowNonNumericNumbers', 'false', ")
# from_json reads half of a surrogate pair as a question mark. is_json() first removes whole pairs and backslashes.
_NO_HALF: Final = r"r'\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'"
_SURROGATE: Final = r"r'\\u[dD][89a-fA-F]'"


def is_json(json: str) -> str:
    """Return SQL for whether a text is one JSON object and nothing else, if from_json has read an object from it.

    ``json`` is an SQL expression for the text; from_json has read it with OPTIONS.
    """
    # from_json ignores text after the value that it has read. So from_json also reads a list of the text and the text's
    # own hash: nobody can write the hash into the text itself.
    mark = f"sha2({json}, 256)"
    marked = f"""concat('[', {json}, ',"', {mark}, '"]')"""
    listed = f"from_json({marked}, 'ARRAY<STRING>', map({_LIKE_JITER}, '202'))"
    alone = f"coalesce(transform(array({listed}), both -> size(both) = 2 AND both[1] = {mark})[0], FALSE)"
    return f"({alone} AND NOT regexp_replace({json}, {_NO_HALF}, ' ') RLIKE {_SURROGATE})"


def more_braces(json: str, objects: str) -> str:
    """Return SQL for whether a text doesn't end with a brace, or has not one closing brace for each object.

    ``objects`` is their number, as from_json has read them. If the result is false, no text follows the object.
    """
    return f"NOT endswith({json}, '}}') OR octet_length({json}) - octet_length(replace({json}, '}}', '')) <> {objects}"


# These are Java's regular expressions. Their quantifiers are possessive (++, *+), because others would cause a
# StackOverflowError for long texts. A string without a closing quote runs to the end ("?+): if it did not match, each
# quote in it would start a search. A backslash is doubled once for SQL's string literals, once for the expression.
_TEXT: Final = r'"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"?+'
_TOKENS: Final = rf'(?s)(?:[^"0-9A-Za-z-]++|{_TEXT})++|-?[A-Za-z]++|-?[0-9][0-9.eE+-]*+|.'
# The number of characters of the longest BIGINT. A VARIANT would turn a much longer number into the text "Infinity".
_DIGITS: Final = 20
_NUMBER: Final = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def plainly(json: str) -> str:
    """Return SQL for a JSON text that from_json reads as brokers read ``json``, an SQL expression.

    The text has whole numbers without fraction and exponent, by the rule of ``quotahost.records.codec.Whole``, and only
    the last value of a name that occurs twice. Broken JSON stays broken.
    """
    # A DOUBLE is small for any number, while a DECIMAL of 1e999999999 would take gigabytes.
    whole = f"abs(try_cast(t AS DOUBLE)) <= {MAX_EXACT} AND try_cast(t AS DOUBLE) = floor(try_cast(t AS DOUBLE))"
    # Brokers accept NaN and any number in fields that they ignore, but a VARIANT would round such numbers or make texts
    # of them. They are replaced by 0.5, which a VARIANT keeps and no field accepts. Blanks separate it from other text.
    number = (
        f"CASE WHEN t IN ('NaN', 'Infinity', '-Infinity') THEN ' 0.5 ' "
        f"WHEN (t RLIKE '[.eE]' OR length(t) > {_DIGITS}) AND t RLIKE '{_NUMBER}' "
        f"THEN if({whole}, string(bigint(try_cast(t AS DOUBLE))), ' 0.5 ') ELSE t END"
    )
    numbers = f"array_join(transform(regexp_extract_all({json}, '{_TOKENS}', 0), t -> {number}), '')"
    # This needs spark.sql.variant.allowDuplicateKeys.
    return f"transform(array({numbers}), n -> coalesce(to_json(try_parse_json(n)), n))[0]"


# ---- texts -----------------------------------------------------------------------------------------

#: A line of a text matches if from_json may have made it of a number, boolean, object or array; few names match.
_NO_TEXT: Final = r'(?m)^(["{\\[0-9+-]|(true|false|NaN|INF|Infinity)$)'
_VARIANTS: Final = (
    "STRUCT<clusterId: VARIANT, brokerId: VARIANT, offlineLogDirs: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, "
    "volumes: ARRAY<STRUCT<volumeName: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, topics: ARRAY<VARIANT>>>, "
    "_corrupt: STRING>"
)


def suspect(s: str, json: str) -> str:
    """Return SQL for whether a snapshot may be misread or no JSON: a cheap check, which few good records match.

    ``s`` is an SQL expression for the SNAPSHOT that from_json has read; ``json`` is one for the text of the record.
    """
    # A search of each character took 15 % of a backlog's time, so the commonest records skip most of the search.
    # All broker ids look like numbers, so the check looks for the field's name and the quote that must follow it.
    first = f"startswith({json}, concat('{{\"brokerId\":\"', {s}.brokerId, '\"'))"
    later = f"contains(substring({json}, 12), 'brokerId')"
    quoted = f'contains({json}, \'"brokerId":"\') OR contains({json}, \'"brokerId": "\')'
    plain = f"({quoted}) AND locate('brokerId', {json}, locate('brokerId', {json}) + 1) = 0"
    topics = f"array_max({s}.volumes.topics) IS NOT NULL AND {_like(f'flatten(array_compact({s}.volumes.topics))')}"
    names = f"{s}.volumes.volumeName"
    limits = f"size(array_compact({s}.volumes.softLimit)) + size(array_compact({s}.volumes.hardLimit))"
    return (
        f"{more_braces(json, f'3 + size({s}.volumes) + {limits}')} "
        f"OR contains({json}, 'null') OR contains({json}, '\\\\u') "
        f"OR CASE WHEN {first} THEN {later} ELSE NOT ({plain}) END "
        f"OR coalesce({s}.clusterId RLIKE '{_NO_TEXT}', FALSE) "
        # Paths begin with a slash, whose code is the one before the digits'.
        f"OR (array_min({names}) < '/' OR array_max({names}) >= '0') AND {_like(names)} "
        f"OR {topics} OR {_like(f'{s}.offlineLogDirs')} "
    )


def _like(texts: str) -> str:
    """Return SQL for whether one of the texts looks as if from_json had made it of another type."""
    return f"coalesce(array_join({texts}, '\\n') RLIKE '{_NO_TEXT}', FALSE)"


def misread(json: str) -> str:
    """Return SQL for ``json``, ``schema`` or ``limit`` if from_json has misread a snapshot, else null.

    The SQL parses the text again; ``json`` is an SQL expression for the text.
    """
    sides = ("softLimit", "hardLimit")
    of_volume = [_other("v.volumeName"), _no_texts("v.topics"), *(_null(f"v.{side}") for side in sides)]
    schema = [
        "t._corrupt IS NOT NULL", _other("t.clusterId"), _other("t.brokerId"), _null("t.offlineLogDirs"),
        _no_texts("CAST(t.offlineLogDirs AS ARRAY<VARIANT>)"), _any("t.volumes", "v", of_volume),
    ]  # fmt: skip
    limit = [*(_null_in(f"t.{side}") for side in sides), _any("t.volumes", "v", [_null_in(f"v.{s}") for s in sides])]
    read = f"from_json({plainly(json)}, '{_VARIANTS}', map('columnNameOfCorruptRecord', '_corrupt'))"
    return (
        f"transform(array({read}), t -> CASE WHEN NOT {is_json(json)} THEN 'json' "
        f"WHEN {' OR '.join(schema)} THEN 'schema' WHEN {' OR '.join(limit)} THEN 'limit' END)[0]"
    )


def _any(items: str, name: str, conditions: list[str]) -> str:
    return f"coalesce(exists({items}, {name} -> {' OR '.join(conditions)}), FALSE)"


def _other(value: str) -> str:
    """Return SQL for whether a VARIANT is present and is no text."""
    return f"coalesce(schema_of_variant({value}) <> 'STRING', FALSE)"


def _no_texts(values: str) -> str:
    return _any(values, "x", [_other("x")])


def _null(value: str) -> str:
    return f"coalesce(is_variant_null({value}), FALSE)"


def _null_in(limit: str) -> str:
    """Return SQL for whether a limit's type or level is null."""
    return " OR ".join(_null(f"try_variant_get({limit}, '$.{field}', 'variant')") for field in ("type", "level"))
