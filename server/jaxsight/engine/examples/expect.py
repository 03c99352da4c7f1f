"""`Expect (TARGET): kernels <= 3, temp <= 4 MiB`: a contract, read into numbers; without a target for the one in use."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

from jaxsight.engine.examples.problems import (
    MALFORMED_EXPECT,
    Malformed,
    Problem,
    nearest,
    problem,
)
from jaxsight.engine.examples.source import Source
from jaxsight.engine.examples.tokens import Reader, found
from jaxsight.engine.text import Range

Comparison = OneOf["<=", "<", "==", ">=", ">"]

METRICS = {
    "kernels": "count",
    "launches": "count",
    "temp": "bytes",
    "folded": "bytes",
}
"""What can be expected, and what it is measured in."""

UNITS = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_PLAIN = re.compile(r"[0-9][0-9_]*(\.[0-9_]+)?")


@dataclass(frozen=True, slots=True)
class Condition:
    """`value` counts kernels or launches, or bytes."""

    metric: str
    comparison: Comparison
    value: int
    range: Range


@dataclass(frozen=True, slots=True)
class Expect:
    """What must hold on a target; on the one in use where `target` is empty."""

    target: str
    conditions: tuple[Condition, ...]
    range: Range


def read_conditions(source: Source, start: int, end: int) -> tuple[list[Condition], list[Problem]]:
    """The conditions between two offsets, one by commas or lines each; reading ends at the first wrong one."""
    reader = Reader(source, start, end)
    conditions: list[Condition] = []
    try:
        if reader.token.is_a("end"):
            raise reader.expected("a condition such as `kernels <= 3`")
        while not reader.token.is_a("end"):
            conditions.append(_condition(reader))
            if reader.token.is_(","):
                reader.advance()
            elif reader.token.is_a("operator"):
                raise reader.expected("`,` or the end of the line")
    except Malformed as malformed:
        wrong = malformed.problem
        return conditions, [problem(MALFORMED_EXPECT, wrong.range, wrong.message)]
    return conditions, []


def _condition(reader: Reader) -> Condition:
    name = reader.token
    known = ", ".join(f"`{metric}`" for metric in METRICS)
    if name.kind != "name":
        raise reader.expected(f"one of {known}")
    if name.text not in METRICS:
        near = nearest(name.text, METRICS)
        end = f"did you mean `{near}`?" if near else f"known are {known}"
        raise reader.fail(f"`{name.text}` is nothing to expect: {end}")
    reader.advance()
    if not reader.token.is_("<=", "<", "==", ">=", ">"):
        raise reader.expected(f"`<=`, `<`, `==`, `>=` or `>` after `{name.text}`")
    comparison = reader.advance().text
    number = reader.token
    if number.kind != "number" or not _PLAIN.fullmatch(number.text):
        raise reader.expected("a number")
    reader.advance()
    amount = Decimal(number.text.replace("_", ""))
    unit = (
        reader.token if reader.token.kind == "name" and reader.token.text not in METRICS else None
    )
    if METRICS[name.text] == "bytes":
        if unit is None and amount:
            raise reader.fail(
                f"expected a unit, such as `{number.text} MiB`, found {found(reader.token)}"
            )
        if unit is not None and unit.text not in UNITS:
            near = nearest(unit.text, UNITS) or "MiB"
            raise reader.fail(f"`{unit.text}` is no unit: did you mean `{near}`?")
        if unit is not None:
            amount *= UNITS[reader.advance().text]
    elif unit is not None:
        raise reader.fail(f"`{name.text}` is a count: it has no unit")
    if amount != int(amount):
        raise reader.fail(f"`{name.text}` must come to a whole number", number)
    match comparison:
        case "<=" | "<" | "==" | ">=" | ">":
            return Condition(name.text, comparison, int(amount), reader.range_from(name.start))
        case _:
            raise AssertionError(comparison)
