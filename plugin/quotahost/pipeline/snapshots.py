"""From Kafka's rows of the snapshots topic to columns; a record that is refused gets its reason in ``error``.

1. ``sql/parse.sql`` reads each record with Spark's from_json, because Python for each row would be far too slow.
2. What from_json doesn't take, though brokers may, is written plainly and read again (:func:`plainly`).
3. What from_json may have misread is read once more, as VARIANTs, which keep what the JSON said (:func:`misread`); a
   cheap look (:func:`suspect`) spares most records that.
4. Then the rules of :mod:`quotahost.records.codec` and :mod:`quotahost.records.snapshot` follow in their order.

Brokers refuse what is no JSON, or of another type, and so must the pipeline: otherwise a broker that reads the
snapshots and one that reads the pipeline's records would know different volumes. tests/pipeline/test_snapshots.py makes
odd JSON for both; docs/internals.md ("What JSON is") lists what from_json takes otherwise than brokers do.
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

#: A limit as in the record; without a limit both fields are null.
LIMIT: Final = "STRUCT<type: STRING, level: BIGINT>"
_VOLUME: Final = (
    f"STRUCT<volumeName: STRING, capacity: BIGINT, consumed: BIGINT, softLimit: {LIMIT}, hardLimit: {LIMIT}, "
    "topics: ARRAY<STRING>>"
)
#: The fields of a snapshot that are read, as ``quotahost.records.snapshot`` reads them; others are ignored.
SNAPSHOT: Final = (
    "STRUCT<schemaVersion: BIGINT, clusterId: STRING, brokerId: STRING, snapshotAt: STRING, ageMs: BIGINT, "
    f"softLimit: {LIMIT}, hardLimit: {LIMIT}, volumes: ARRAY<{_VOLUME}>, offlineLogDirs: ARRAY<STRING>, "
    # As its JSON: a list that is wrong must not make the record wrong (quotahost.records.snapshot).
    "budgets: STRING, _corrupt: STRING>"
)
#: There was no snapshot before: a machine that writes one has lost its clock.
OLDEST: Final = "2026-01-01 00:00:00"


def parse(
    raw: DataFrame, clusters: Mapping[str, str] | None = None, validity: timedelta = timedelta(minutes=1)
) -> DataFrame:
    """Kafka's rows as snapshots, batch or stream, in Spark's own functions.

    ``clusters`` is the cluster that each topic belongs to, by topic. A record that names another one is refused: who
    may write to one cluster's topic must not speak for another cluster. Without it, any cluster is taken.

    Returns:
        topic, partition, offset, timestamp, value; ``broker`` (the key); ``at`` (snapshotAt); ``seen``, by which
        snapshots are ordered and aged: when the volumes were read, by Kafka's clock (``quotahost.records.fields``);
        ``removed``, true for a tombstone; ``cluster``, the record's own, else its topic's, null if neither is known;
        ``s``, the snapshot in the type SNAPSHOT, null for a tombstone; ``error``, null for a good record: a broker's
        reason to refuse it, or ``time`` (Kafka dates it before OLDEST), or ``cluster`` (not its topic's).
    """
    of = list((clusters or {}).items())
    args = {f"topic{n}": topic for n, (topic, _) in enumerate(of)} | {f"id{n}": name for n, (_, name) in enumerate(of)}
    # A CASE of literals; a map out of JSON might be read again for each row.
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
    """Whether a limit has a type without a level, an unknown type, or a level out of range; ``{}`` is no limit."""
    return (
        f"coalesce(({limit}.type IS NULL) <> ({limit}.level IS NULL) OR {limit}.level < 0 "
        f"OR {limit}.type NOT IN ('ConsumedBytes', 'MinFreeBytes', 'MinFreePercentage') "
        f"OR ({limit}.type = 'MinFreePercentage' AND {limit}.level > 100), FALSE)"
    )


# ---- JSON ------------------------------------------------------------------------------------------

#: For from_json, as jiter (pydantic's parser) has it by which brokers read: 201 levels, and 4,300 digits of an integer.
_LIKE_JITER: Final = "'allowSingleQuotes', 'false', 'maxNumLen', '4300', 'maxNestingDepth'"
OPTIONS: Final = f"map({_LIKE_JITER}, '201', 'columnNameOfCorruptRecord', '_corrupt')"
# Where no field is a DOUBLE. Brokers take NaN and Infinity where nobody reads them, but not INF: plainly().
_OF_WHOLE_NUMBERS: Final = OPTIONS.replace("map(", "map('allowNonNumericNumbers', 'false', ")
# from_json reads half of a surrogate pair as a question mark. Whole pairs and backslashes are taken out first.
_NO_HALF: Final = r"r'\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'"
_SURROGATE: Final = r"r'\\u[dD][89a-fA-F]'"


def is_json(json: str) -> str:
    """Whether a text from which from_json, with OPTIONS, has read an object is one JSON object and nothing else.

    ``json`` is an SQL expression for the text.
    """
    # from_json ignores what follows the value that it has read. In a list, something follows that nobody can write
    # before: the text's own hash.
    mark = f"sha2({json}, 256)"
    marked = f"""concat('[', {json}, ',"', {mark}, '"]')"""
    listed = f"from_json({marked}, 'ARRAY<STRING>', map({_LIKE_JITER}, '202'))"
    alone = f"coalesce(transform(array({listed}), both -> size(both) = 2 AND both[1] = {mark})[0], FALSE)"
    return f"({alone} AND NOT regexp_replace({json}, {_NO_HALF}, ' ') RLIKE {_SURROGATE})"


def more_braces(json: str, known: str) -> str:
    """Whether a text doesn't end with a brace, or has more closing ones than the ``known`` objects read from it.

    Where it hasn't, no text follows the object that from_json has read.
    """
    return f"NOT endswith({json}, '}}') OR octet_length({json}) - octet_length(replace({json}, '}}', '')) <> {known}"


# Java's regular expressions. Possessive quantifiers (++, *+), because others would end in a StackOverflowError for long
# texts. A string that is never closed runs to the end ("?+): if it did not match, each quote in it would begin a
# search. A backslash is doubled once for SQL's string literals and once for the expression.
_TEXT: Final = r'"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"?+'
_TOKENS: Final = rf'(?s)(?:[^"0-9A-Za-z-]++|{_TEXT})++|-?[A-Za-z]++|-?[0-9][0-9.eE+-]*+|.'
# Characters of the longest BIGINT. A VARIANT would make the text "Infinity" of a number that is much longer.
_DIGITS: Final = 20
_NUMBER: Final = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def plainly(json: str) -> str:
    """A JSON text that from_json reads as brokers read ``json``, an SQL expression; broken JSON stays broken.

    Whole numbers have neither fraction nor exponent, by the rule of ``quotahost.records.codec.Whole``. Of a name that
    comes twice only the last value is left.
    """
    # A DOUBLE has no digits to run out of, where a DECIMAL of 1e999999999 would take gigabytes.
    whole = f"abs(try_cast(t AS DOUBLE)) <= {MAX_EXACT} AND try_cast(t AS DOUBLE) = floor(try_cast(t AS DOUBLE))"
    # Brokers take NaN and any number where nobody reads it. No field takes 0.5, which a VARIANT keeps as it is: it
    # rounds others or makes texts of them. The blanks keep 0.5 apart from what stands beside it.
    number = (
        f"CASE WHEN t IN ('NaN', 'Infinity', '-Infinity') THEN ' 0.5 ' "
        f"WHEN (t RLIKE '[.eE]' OR length(t) > {_DIGITS}) AND t RLIKE '{_NUMBER}' "
        f"THEN if({whole}, string(bigint(try_cast(t AS DOUBLE))), ' 0.5 ') ELSE t END"
    )
    numbers = f"array_join(transform(regexp_extract_all({json}, '{_TOKENS}', 0), t -> {number}), '')"
    # With spark.sql.variant.allowDuplicateKeys.
    return f"transform(array({numbers}), n -> coalesce(to_json(try_parse_json(n)), n))[0]"


# ---- texts -----------------------------------------------------------------------------------------

#: What from_json makes of a number, a boolean, an object or an array begins so; few names do. For each line of a text.
_NO_TEXT: Final = r'(?m)^(["{\\[0-9+-]|(true|false|NaN|INF|Infinity)$)'
_VARIANTS: Final = (
    "STRUCT<clusterId: VARIANT, brokerId: VARIANT, offlineLogDirs: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, "
    "volumes: ARRAY<STRUCT<volumeName: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, topics: ARRAY<VARIANT>>>, "
    "_corrupt: STRING>"
)


def suspect(s: str, json: str) -> str:
    """Whether a snapshot may be misread or no JSON, by a look that costs little; few good records are suspects.

    ``s`` is an SQL expression for what from_json has read, as SNAPSHOT; ``json`` is one for the text that it has read.
    """
    # A search from character to character took 15 % of a backlog, so the commonest records are spared most of it.
    # All broker ids look like numbers, so it takes the one field's name and the quote that has to follow it.
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
        # Paths begin with a slash, which comes right before the digits.
        f"OR (array_min({names}) < '/' OR array_max({names}) >= '0') AND {_like(names)} "
        f"OR {topics} OR {_like(f'{s}.offlineLogDirs')} "
    )


def _like(texts: str) -> str:
    """Whether one of the texts looks like what from_json makes of something else."""
    return f"coalesce(array_join({texts}, '\\n') RLIKE '{_NO_TEXT}', FALSE)"


def misread(json: str) -> str:
    """``json``, ``schema`` or ``limit`` for a snapshot that from_json has misread, else null. It reads the text again.

    ``json`` is an SQL expression for the text.
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
    """Whether a VARIANT is there and no text."""
    return f"coalesce(schema_of_variant({value}) <> 'STRING', FALSE)"


def _no_texts(values: str) -> str:
    return _any(values, "x", [_other("x")])


def _null(value: str) -> str:
    return f"coalesce(is_variant_null({value}), FALSE)"


def _null_in(limit: str) -> str:
    """Whether a limit's type or level is null."""
    return " OR ".join(_null(f"try_variant_get({limit}, '$.{field}', 'variant')") for field in ("type", "level"))
