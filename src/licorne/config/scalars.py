"""The types of scalars: text, number, truth value, or null.

The original's parser is a YAML 1.2 reader with some habits of 1.1, and whether a configuration is accepted depends
on them: `010` is eight, `1_000` a thousand, `'yes'` in quotes is true where a truth value is expected, and `'true'`
in quotes is not (docs/spec/config.md, sections 13.4 to 13.6). PyYAML follows YAML 1.1 and decides
otherwise, so its resolver is not used. These functions are the whole of the type rules.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

from licorne.config.nodes import YamlNode

Scalar = str | bool | int | float | None
Resolved = tuple[str, Scalar]

_WORDS: Final[dict[str, Resolved]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), ("!!null", None)),
    **dict.fromkeys(("true", "True", "TRUE"), ("!!bool", True)),
    **dict.fromkeys(("false", "False", "FALSE"), ("!!bool", False)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), ("!!float", math.nan)),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), ("!!float", math.inf)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), ("!!float", -math.inf)),
    "<<": ("!!merge", None),
}
_INTEGER: Final = re.compile(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(?:0[oO]|0)([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_TIMESTAMP: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt ][0-9]{1,2}:[0-9]{1,2}:[0-9.]+.*)?")
_KNOWN_TAGS: Final = frozenset(("!!bool", "!!int", "!!float", "!!null", "!!timestamp"))
_TRUE_WORDS: Final = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
_FALSE_WORDS: Final = frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF"))
_TWO_63: Final = 2**63
_TWO_64: Final = 2**64
_LONGEST_NUMBER: Final = 400  # no integer of 64 bits and no useful float has more characters


class ScalarError(ValueError):
    """The error for a scalar that does not fit its explicit tag, such as `!!int abc`."""


def resolve(node: YamlNode) -> Resolved:
    """Return the tag and the value of a scalar node.

    Quoted texts and block scalars are texts unless a tag says otherwise.

    Raises:
        ScalarError: the scalar does not fit its explicit tag.
    """
    tag = node.tag
    if tag == "!!str" or (not tag and not node.plain):
        return "!!str", node.text
    if tag == "!!binary":
        return "!!str", _binary(node.text)
    if tag and tag not in _KNOWN_TAGS:
        return tag, node.text  # an unknown tag has no meaning, but the text no longer counts as number or truth value
    found, value = _resolve_plain(node.text)
    if tag in ("", found):
        return found, value
    if tag == "!!float" and found == "!!int" and isinstance(value, int):
        return tag, float(value)
    raise ScalarError(f"'{node.text}' is no {tag}")


def _resolve_plain(text: str) -> Resolved:
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[0]
    if first == ".":
        return _float(text, text)
    if first not in "+-0123456789" or len(text) > _LONGEST_NUMBER:
        return "!!str", text
    if _TIMESTAMP.fullmatch(text):
        return "!!timestamp", text
    digits = text.replace("_", "")
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        sign, hexadecimal, binary, octal, decimal = match.groups()
        base = 16 if hexadecimal else 2 if binary else 8 if octal else 10
        number = int(hexadecimal or binary or octal or decimal, base)
        number = -number if sign == "-" else number
        # In the original a number above 63 bits is an integer only if it is written without a sign.
        if -_TWO_63 <= number < (_TWO_63 if sign else _TWO_64):
            return "!!int", number
    return _float(digits, text)


def _float(digits: str, text: str) -> Resolved:
    if _FLOAT.fullmatch(digits):
        value = float(digits)
        if not math.isinf(value):
            return "!!float", value
    return "!!str", text


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise ScalarError("not base64 text, as !!binary says") from None


def as_bool(value: Scalar) -> bool | None:
    """Return the truth value of a scalar, also of the words of YAML 1.1; None if it has none."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return True if value in _TRUE_WORDS else False if value in _FALSE_WORDS else None
    return None


def as_unsigned(value: Scalar) -> int | None:
    """Return the unsigned integer of 64 bits that a scalar means; None if it means none.

    Fractions are cut. A negative float is not an error in the original but wraps around to a huge number
    (docs/spec/config.md, section 13.4); the same number is computed here, since other checks compare it.
    """
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return None
    if isinstance(value, int):
        return value if 0 <= value < _TWO_64 else None
    if math.isnan(value) or value > float(_TWO_64):
        return None
    if value >= -float(_TWO_63) and value < float(_TWO_64):
        return int(value) % _TWO_64
    return _TWO_63


def as_float(value: Scalar) -> float | None:
    """Return the number that a scalar means; None if it means none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_null(node: YamlNode) -> bool:
    """Return whether a node is a null, written or left out."""
    if node.kind != "scalar" or len(node.text) > 4:
        return False
    try:
        return resolve(node)[0] == "!!null"
    except ScalarError:
        return False


def is_text(node: YamlNode) -> bool:
    """Return whether a node is a text by its spelling."""
    try:
        return node.kind == "scalar" and resolve(node)[0] == "!!str"
    except ScalarError:
        return False


def is_merge(node: YamlNode) -> bool:
    """Return whether a key is the merge key `<<`."""
    return node.kind == "scalar" and node.text == "<<" and (node.tag == "!!merge" or (node.plain and not node.tag))
