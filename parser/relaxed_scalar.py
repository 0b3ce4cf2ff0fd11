"""A number or literal that is not written as JSON writes it, where it can mean one thing only."""

from __future__ import annotations

import re

from .json_scan import SCALAR
from .rules import Rule

# What may be one scalar. Wider than JSON, so that what follows a digit cannot be taken for a token of its own.
RUN = re.compile(r"[-+.\w]+", re.ASCII)

# Python's words, and JSON's own in other cases. `yes`, `nil` and the like may be words of a text.
_LITERALS = {
    **dict.fromkeys(("True", "TRUE"), "true"),
    **dict.fromkeys(("False", "FALSE"), "false"),
    **dict.fromkeys(("None", "Null", "NULL"), "null"),
}
# Up to 64 bits: converting takes time that grows with the square of the length.
_HEXADECIMAL = re.compile(r"([-+]?)0[xX]([0-9a-fA-F]{1,16})")
# Digits in groups of three only, as they are written for reading: in other groups they may be anything. No nought in
# front, which is octal to some readers. Digits may be missing on one side of the point.
_DECIMAL = re.compile(r"([-+]?)(0|[1-9][0-9]*|[1-9][0-9]{0,2}(?:_[0-9]{3})+)?(?:\.([0-9]*))?([eE][-+]?[0-9]+)?")


def as_json(word: str) -> tuple[str, Rule | None] | None:
    """`word` as a JSON scalar, and the rule that took; None if it is none or may be several.

    `007` may be octal or not, `NaN` and `undefined` are nothing that JSON has a word for.
    """
    if SCALAR.fullmatch(word):
        return word, None
    if literal := _LITERALS.get(word):
        return literal, Rule.PYTHON_LITERALS
    if number := _number(word):
        return number, Rule.NUMBER_SPELLING
    return None


def _number(word: str) -> str | None:
    if hexadecimal := _HEXADECIMAL.fullmatch(word):
        sign, digits = hexadecimal.groups()
        return sign.removeprefix("+") + str(int(digits, 16))
    decimal = _DECIMAL.fullmatch(word)
    if decimal is None:
        return None
    sign, whole, fraction, exponent = decimal.groups()
    # A point alone, a sign alone or a power of nothing.
    if not (whole or fraction):
        return None
    point = "" if fraction is None else f".{fraction or '0'}"
    return sign.removeprefix("+") + (whole or "0").replace("_", "") + point + (exponent or "")
