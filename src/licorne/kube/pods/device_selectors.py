"""Conditions on devices in CEL, the language of the selectors of device classes and of requests.

The language is that of Google's runtime (cel-expr-python). Kubernetes adds quantities and versions, which are maps of one entry here:
the runtime knows no types of Python. The runtime bounds the depth of expressions and the iterations of an evaluation.
What its domain does not have is an empty map in `device.attributes`, as in Kubernetes; the runtime has no such maps, so
each domain that the text of an expression names is entered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from licorne.config.kubernetes import NANO, QuantityError, parse_nano
from licorne.kube.objects.devices import Device

EXPRESSION_MAX: Final = 10 * 1024
"""Characters of an expression, as the API server allows."""
EXPRESSIONS_MAX: Final = 1024
"""Expressions that are kept compiled, at most."""
_QUANTITY: Final = "quantity"
_VERSION: Final = "semver"
_LITERAL: Final = re.compile(r""""([^"\\]*)"|'([^'\\]*)'""")
_SEMVER: Final = re.compile(
    r"(0|[1-9][0-9]{0,18})\.(0|[1-9][0-9]{0,18})\.(0|[1-9][0-9]{0,18})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?"
)
_Value = Mapping[str, str]


class SelectorError(ValueError):
    """The error for an expression that cannot be compiled, or that fails on a device."""


def variables(device: Device, driver: str) -> dict[str, Any]:
    """Return what an expression can say of a device of a driver."""
    attributes: dict[str, dict[str, Any]] = {}
    for name, value in (device.attributes or {}).items():
        domain, key = _qualified(name, driver)
        attributes.setdefault(domain, {})[key] = _attribute(value)
    capacity: dict[str, dict[str, Any]] = {}
    for name, amount in (device.capacity or {}).items():
        domain, key = _qualified(name, driver)
        capacity.setdefault(domain, {})[key] = {_QUANTITY: str(amount.value)}
    return {
        "driver": driver,
        "allowMultipleAllocations": bool(device.allow_multiple_allocations),
        "attributes": attributes,
        "capacity": capacity,
    }


def is_met(expression: str, device: Mapping[str, Any]) -> bool:
    """Return whether a device, given by its `variables`, meets an expression.

    Raises:
        SelectorError: it cannot be compiled, names something that the device does not have, or is no condition.
    """
    compiled = _compiled(expression)
    if isinstance(compiled, str):
        raise SelectorError(compiled)
    program, domains = compiled
    missing = {
        part: {**{key: {} for key in domains - device[part].keys()}, **device[part]}
        for part in ("attributes", "capacity")
        if not domains <= device[part].keys()
    }
    try:
        found = program.eval(data={"device": {**device, **missing}})
        kind, value = found.type().name(), found.value()
    except Exception as error:
        raise SelectorError(str(error)) from error
    if kind != "BOOL":
        raise SelectorError(str(value) if kind == "ERROR" else f"the expression is of type {kind}, not a condition")
    return bool(value)


def values_of(device: Device, driver: str, name: str) -> frozenset[object]:
    """Return the values of an attribute of a device by its full name, each with its type; none if the device does not have it."""
    found = (device.attributes or {}).get(name)
    domain, _, key = name.partition("/")
    if found is None and domain == driver:
        found = (device.attributes or {}).get(key)
    kind, said = next(iter((found or {}).items()), ("", ()))
    return frozenset((kind.removesuffix("s"), one) for one in (said if kind.endswith("s") else [said]) if kind)


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, key = name.partition("/")
    return (domain, key) if slash else (driver, name)


def _attribute(value: Mapping[str, Any]) -> object:
    kind, said = next(iter(value.items()), ("", None))
    if kind == "version":
        return {_VERSION: str(said)}
    if kind == "versions":
        return [{_VERSION: str(one)} for one in said or ()]
    return said


@lru_cache(maxsize=EXPRESSIONS_MAX)
def _compiled(expression: str) -> tuple[Any, frozenset[str]] | str:
    """Return the program of an expression and the domains that it names; a text: why it cannot be compiled."""
    if len(expression) > EXPRESSION_MAX:
        return f"the expression has more than {EXPRESSION_MAX} characters"
    try:
        program = _environment().compile(expression)
    except ImportError as error:
        return f"selectors of devices need the extra `kube`: {error}"
    except Exception as error:  # noqa: BLE001  whatever the runtime raises
        return str(error)
    return program, frozenset(one or other for one, other in _LITERAL.findall(expression))


@lru_cache(maxsize=1)
def _environment() -> Any:
    """Return the language with what Kubernetes adds; the runtime takes 20 MB, so it is loaded when a selector is first seen."""
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_bindings, ext_optional, ext_strings  # noqa: PLC0415

    of = cel.Type
    amount, text, whole, yes = of.MAP, of.STRING, of.INT, of.BOOL
    kinds_of_values = (yes, whole, text, amount)
    made: dict[str, list[Any]] = {}

    def add(name: str, do: Callable[..., object], result: Any, *parameters: Any) -> None:
        kinds = "_".join(one.name() for one in parameters)
        is_method = name == "includes" or parameters[0] == amount
        overload = cel.Overload(f"{name}_{kinds}", result, list(parameters), is_method, do)
        made.setdefault(name, []).append(overload)

    add("quantity", _quantity, of.DYN, text)
    add("isQuantity", lambda said: _reads(_nano, {_QUANTITY: said}), yes, text)
    add("semver", _version, of.DYN, text)
    add("semver", lambda said, normalize: _version(_normal(said) if normalize else said), of.DYN, text, yes)
    add("isSemver", lambda said: _reads(_key, {_VERSION: said}), yes, text)
    add("isGreaterThan", lambda a, b: _key(a) > _key(b), yes, amount, amount)
    add("isLessThan", lambda a, b: _key(a) < _key(b), yes, amount, amount)
    add("compareTo", lambda a, b: (_key(a) > _key(b)) - (_key(a) < _key(b)), whole, amount, amount)
    add("asInteger", _integer, whole, amount)
    add("isInteger", lambda a: _nano(a) % NANO == 0, yes, amount)
    add("asApproximateFloat", lambda a: _nano(a) / NANO, of.DOUBLE, amount)
    add("sign", lambda a: (_nano(a) > 0) - (_nano(a) < 0), whole, amount)
    for name, sign in (("add", 1), ("sub", -1)):
        add(name, lambda a, b, sign=sign: _sum(_nano(a) + sign * _nano(b)), of.DYN, amount, amount)
        add(name, lambda a, b, sign=sign: _sum(_nano(a) + sign * b * NANO), of.DYN, amount, whole)
    for at, name in enumerate(("major", "minor", "patch"), 1):
        add(name, lambda a, at=at: int(_parts(a)[at]), whole, amount)
    for kind in (of.LIST, *kinds_of_values):
        for of_one in kinds_of_values:
            add("includes", _includes, yes, kind, of_one)
    return cel.NewEnv(
        variables={"device": of.DYN},
        functions=[cel.FunctionDecl(name, overloads) for name, overloads in made.items()],
        extensions=[ext_bindings.ExtBindings(), ext_optional.ExtOptional(), ext_strings.ExtStrings()],
    )


def _includes(values: Any, one: object) -> bool:
    """Return whether a value is in an attribute that is a list, or is the attribute."""
    known = values if isinstance(values, list) else [values]
    return any(type(each) is type(one) and each == one for each in known)


def _reads(read: Callable[[_Value], object], value: _Value) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


def _quantity(text: str) -> dict[str, str]:
    parse_nano(text)
    return {_QUANTITY: text}


def _version(text: str) -> dict[str, str]:
    _parts({_VERSION: text})
    return {_VERSION: text}


def _normal(text: str) -> str:
    """Return a version with three numbers, without a `v` before them or zeros before a number."""
    numbers, sign, rest = re.fullmatch(r"v?([0-9.]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [one.lstrip("0") or "0" for one in numbers.split(".")]
    return ".".join([*parts, *["0"] * (3 - len(parts))]) + sign + rest


def _nano(value: _Value) -> int:
    if _QUANTITY not in value:
        raise QuantityError("it is no quantity")
    return parse_nano(value[_QUANTITY])


def _sum(nano: int) -> dict[str, str]:
    return {_QUANTITY: f"{nano}n"}


def _integer(value: _Value) -> int:
    whole, rest = divmod(_nano(value), NANO)
    if rest:
        raise QuantityError("it is no integer")
    return whole


def _parts(value: _Value) -> tuple[str, ...]:
    """Return a version as its text, its three numbers and what follows the minus sign."""
    found = _SEMVER.fullmatch(value.get(_VERSION, ""))
    if found is None:
        raise ValueError("it is no version")
    return (found[0], found[1], found[2], found[3], found[4] or "")


def _key(value: _Value) -> tuple[Any, ...]:
    """Return what quantities, or versions, are compared by; a version that is not released yet comes before the release."""
    if _QUANTITY in value:
        return ("quantity", _nano(value))
    _, major, minor, patch, before = _parts(value)
    words = tuple((0, int(one), "") if one.isdecimal() else (1, 0, one) for one in before.split("."))
    return ("version", int(major), int(minor), int(patch), before == "", words)
