"""JSON's integers in every form that JSON has for them, in SQL: 5.0 and 5e0 are the integer 5.

Draft 7 of JSON Schema says so (6.1.1, "integer"), and proposal 035's schema is one of draft 7. The parse of the
snapshots needs it, because Spark reads no BIGINT from a number with a fraction or an exponent.
"""

from __future__ import annotations

from typing import Final

from quotahost.records.codec import MAX_EXACT

# Java's regular expressions. Possessive quantifiers (++, *+), because others would end in a StackOverflowError for long
# texts. A string that is never closed runs to the end ("?+): if it did not match, each quote in it would begin a
# search. A backslash is doubled once for SQL's string literals and once for the expression.
_TEXT: Final = r'"[^"\\\\]*+(?:\\\\.[^"\\\\]*+)*+"?+'
_TOKENS: Final = rf'(?s)(?:[^"0-9-]++|{_TEXT})++|-?[0-9][0-9.eE+-]*+|.'
_NUMBER: Final = "^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"


def whole_numbers(json: str) -> str:
    """A JSON text whose whole numbers have neither fraction nor exponent; all else is as it was, broken JSON too.

    A number with a point or an exponent counts as the double nearest to it, up to 2**53 - 1 on both sides of 0: beyond,
    a double may stand for several whole numbers. The rule is that of ``quotahost.records.codec.Whole``.

    Args:
        json: an SQL expression for the text.
    """
    # A DOUBLE has no digits to run out of, where a DECIMAL of 1e999999999 would take gigabytes.
    whole = f"abs(try_cast(t AS DOUBLE)) <= {MAX_EXACT} AND try_cast(t AS DOUBLE) = floor(try_cast(t AS DOUBLE))"
    written = f"if(t RLIKE '[.eE]' AND t RLIKE '{_NUMBER}' AND {whole}, string(bigint(try_cast(t AS DOUBLE))), t)"
    return f"array_join(transform(regexp_extract_all({json}, '{_TOKENS}', 0), t -> {written}), '')"
