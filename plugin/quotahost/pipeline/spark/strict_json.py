"""What Spark's from_json takes otherwise than brokers do, in SQL, so that both take the same bytes.

Brokers refuse what is no JSON, or of another type (``quotahost.records.codec`` is strict), and so must the pipeline:
otherwise a broker that reads the snapshots and one that reads the pipeline's records would know different volumes.

- JSON itself: from_json takes single quotes, text after the closing brace, half surrogate pairs, INF, and 1,000 levels.
  :data:`OPTIONS` turns off what it can; :func:`is_json` says of the rest whether a text is JSON for brokers, too.
- JSON's integers have several forms: 5.0 and 5e0 are the integer 5 for draft 7 of JSON Schema (6.1.1), which proposal
  035's schema follows. from_json reads no BIGINT from them. Of a name that comes twice the last value holds, whatever
  the first one is. :func:`plainly` writes a text so that from_json reads what brokers do.
- from_json takes 7 for the text "7", and null for a field left out. :func:`misread` reads such a record once more, as
  VARIANTs, which keep what the JSON said.

Most records are spared all of that: only what from_json doesn't take is written plainly, and only a record that
:func:`suspect` finds by a cheap look is read once more. tests/pipeline/volumes/test_parse.py makes odd JSON for both.
"""

from __future__ import annotations

from typing import Final

from quotahost.records.codec import MAX_EXACT, MAX_NUMBER, NUMERIC

# ---- JSON ------------------------------------------------------------------------------------------

#: For from_json, as jiter (pydantic's parser) has it by which brokers read: 201 levels.
_LIKE_JITER: Final = "'allowSingleQuotes', 'false', 'maxNestingDepth'"
OPTIONS: Final = f"map({_LIKE_JITER}, '201', 'columnNameOfCorruptRecord', '_corrupt')"
#: Where no field is a DOUBLE. Brokers take NaN and Infinity where nobody reads them, but not INF: :func:`plainly`.
OF_WHOLE_NUMBERS: Final = OPTIONS.replace("map(", "map('allowNonNumericNumbers', 'false', ")
# from_json reads half of a surrogate pair as a question mark. Whole pairs and backslashes are taken out first.
_NO_HALF: Final = r"r'\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}'"
_SURROGATE: Final = r"r'\\u[dD][89a-fA-F]'"


def long_number(json: str) -> str:
    """Whether a text has a number that is longer than brokers take (``quotahost.records.codec.MAX_NUMBER``)."""
    # Most records are shorter, and are spared the search.
    return f"(octet_length({json}) > {MAX_NUMBER} AND {json} RLIKE '{NUMERIC}{{{MAX_NUMBER + 1}}}')"


def is_json(json: str) -> str:
    """Whether a text from which from_json, with OPTIONS, has read an object is one JSON object and nothing else.

    Args:
        json: an SQL expression for the text.
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


# ---- numbers, and names that come twice ------------------------------------------------------------

# Java's regular expressions. Possessive quantifiers (++, *+), because others would end in a StackOverflowError for long
# texts. A string that is never closed runs to the end ("?+): if it did not match, each quote in it would begin a
# search. A backslash is doubled once for SQL's string literals and once for the expression.
_TEXT: Final = r'"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"?+'
_TOKENS: Final = rf'(?s)(?:[^"0-9A-Za-z-]++|{_TEXT})++|-?[A-Za-z]++|-?[0-9][0-9.eE+-]*+|.'
_NUMBER: Final = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def plainly(json: str) -> str:
    """A JSON text that from_json reads as brokers read ``json``, an SQL expression; broken JSON stays broken.

    Whole numbers have neither fraction nor exponent. A number with a point or an exponent counts as the double nearest
    to it, up to 2**53 - 1 on both sides of 0: beyond, a double may stand for several whole numbers. The rule is that of
    ``quotahost.records.codec.Whole``. Of a name that comes twice only the last value is left.
    """
    # A DOUBLE has no digits to run out of, where a DECIMAL of 1e999999999 would take gigabytes.
    whole = f"abs(try_cast(t AS DOUBLE)) <= {MAX_EXACT} AND try_cast(t AS DOUBLE) = floor(try_cast(t AS DOUBLE))"
    # Brokers take NaN and any number where nobody reads it. No field takes 0.5, which a VARIANT keeps as it is: it
    # rounds others or makes texts of them. The blanks keep 0.5 apart from what stands beside it.
    number = (
        f"CASE WHEN t IN ('NaN', 'Infinity', '-Infinity') THEN ' 0.5 ' "
        f"WHEN t RLIKE '[.eE]' AND t RLIKE '{_NUMBER}' "
        f"THEN if({whole}, string(bigint(try_cast(t AS DOUBLE))), ' 0.5 ') ELSE t END"
    )
    numbers = f"array_join(transform(regexp_extract_all({json}, '{_TOKENS}', 0), t -> {number}), '')"
    # With spark.sql.variant.allowDuplicateKeys.
    return f"transform(array({numbers}), n -> coalesce(to_json(try_parse_json(n)), n))[0]"


# ---- texts -----------------------------------------------------------------------------------------

#: What from_json makes of a number, a boolean, an object or an array begins so; few names do. For each line of a text.
_NO_TEXT: Final = r'(?m)^(["{\\[0-9+-]|(true|false|NaN|INF|Infinity)$)'
_SNAPSHOT: Final = (
    "STRUCT<clusterId: VARIANT, brokerId: VARIANT, offlineLogDirs: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, "
    "volumes: ARRAY<STRUCT<volumeName: VARIANT, softLimit: VARIANT, hardLimit: VARIANT, topics: ARRAY<VARIANT>>>, "
    "_corrupt: STRING>"
)


def suspect(s: str, json: str) -> str:
    """Whether a snapshot may be misread or no JSON, by a look that costs little; few good records are suspects.

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
    read = f"from_json({plainly(json)}, '{_SNAPSHOT}', map('columnNameOfCorruptRecord', '_corrupt'))"
    return (
        f"transform(array({read}), t -> CASE WHEN NOT {is_json(json)} THEN 'json' WHEN {schema} THEN 'schema' "
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
