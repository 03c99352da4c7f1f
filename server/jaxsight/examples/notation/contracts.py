"""Read contracts: `Expect (TARGET): kernels <= 3, temp <= 4 MiB`.

A contract without a target applies to the configured one. Amounts of memory and of moved data are
those of one device.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf
from typing import cast

from jaxsight.examples.notation.tokens import Token, TokenReader
from jaxsight.examples.problems import (
    MALFORMED_EXPECT,
    Malformed,
    Problem,
    did_you_mean,
    nearest,
    problem,
    quoted,
)
from jaxsight.figures.metrics import COLLECTIVES
from jaxsight.source.text import Range
from jaxsight.text import units

Comparison = OneOf["<=", "<", "==", ">=", ">"]

HOST_TRANSFERS, HOST_MOVED = "host-transfers", "host-moved"
"""The metrics of transfers between host and device, without those of callbacks."""

METRICS = {
    "kernels": "count",
    "launches": "count",
    "temp": "bytes",
    "folded": "bytes",
    "collectives": "count",
    "moved": "bytes",
    HOST_TRANSFERS: "count",
    HOST_MOVED: "bytes",
    **dict.fromkeys(COLLECTIVES, "count"),
}
"""The metrics of contracts, with their units."""

_METRICS_HELP = "use `kernels`, `launches`, `temp`, `folded`, `collectives` or `moved`"

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "kB", "KB", "MB", "GB", "TB")
UNITS = {unit: units.BYTES_PER_UNIT[unit.upper()] for unit in _UNITS}
_BEGINNINGS = {name.partition("-")[0] for name in METRICS}
_PLAIN = re.compile(r"[0-9][0-9_]*(\.[0-9_]+)?")


@dataclass(frozen=True, slots=True)
class MetricDemand:
    """One comparison; `value` is a number of kernels, launches or bytes."""

    metric: str
    comparison: Comparison
    value: int
    range: Range


@dataclass(frozen=True, slots=True)
class Expect:
    """A contract for a target; an empty `target` is the configured one."""

    target: str
    conditions: tuple[MetricDemand, ...]
    range: Range


def read_contract(
    reader: TokenReader, target: str, range: Range
) -> tuple[Expect, tuple[Problem, ...]]:
    """Return the contract for a target: the conditions, separated by commas or lines.

    Reading stops at the first malformed condition, which is the problem returned.
    """
    conditions: list[MetricDemand] = []
    problems: tuple[Problem, ...] = ()
    try:
        if reader.token.is_a("end"):
            raise reader.expected("a condition", help="write a condition such as `kernels <= 3`")
        while not reader.token.is_a("end"):
            conditions.append(_condition(reader))
            if reader.token.is_(","):
                reader.advance()
            elif reader.token.is_a("operator"):
                raise reader.expected("`,` or the end of the line")
    except Malformed as malformed:
        wrong = malformed.problem
        problems = (problem(MALFORMED_EXPECT, wrong.range, wrong.message, wrong.help),)
    return Expect(target, tuple(conditions), range), problems


def _condition(reader: TokenReader) -> MetricDemand:
    name = _metric(reader)
    if not reader.token.is_("<=", "<", "==", ">=", ">"):
        raise reader.expected(
            f"a comparison after `{name.text}`", help="use `<=`, `<`, `==`, `>=` or `>`"
        )
    comparison = reader.advance().text
    number = reader.token
    if number.kind != "number" or not _PLAIN.fullmatch(number.text):
        raise reader.expected("a number")
    reader.advance()
    amount = Decimal(number.text.replace("_", ""))
    # The name after an amount is its unit, unless it is the metric of the next line.
    is_unit = reader.token.kind == "name" and reader.token.text not in _BEGINNINGS
    unit = reader.token if is_unit else None
    if METRICS[name.text] == "bytes":
        if unit is None and amount:
            raise reader.expected(
                f"a unit after {quoted(number.text)}", help=f"write `{number.text} MiB`"
            )
        if unit is not None and unit.text not in UNITS:
            near = nearest(unit.text, UNITS) or "MiB"
            raise reader.fail(f"unknown unit {quoted(unit.text)}", help=f"did you mean `{near}`?")
        if unit is not None:
            amount *= UNITS[reader.advance().text]
    elif unit is not None:
        raise reader.fail(f"`{name.text}` is a count and takes no unit", help="remove the unit")
    if amount != int(amount):
        of_bytes = " of bytes" if METRICS[name.text] == "bytes" else ""
        raise reader.fail(f"`{name.text}` must be a whole number{of_bytes}", number)
    range = reader.range_from(name.start)
    return MetricDemand(name.text, cast(Comparison, comparison), int(amount), range)


def _metric(reader: TokenReader) -> Token:
    """Return the metric at the reader, and move past it.

    A metric may have hyphens, which are tokens of their own.
    """
    first = reader.token
    if first.kind != "name":
        raise reader.expected("a metric", help=_METRICS_HELP)
    reader.advance()
    text, end = first.text, first.end
    while reader.token.is_("-") and reader.token.start == end:
        hyphen = reader.token
        part = reader.peek()
        if part.kind != "name" or part.start != hyphen.end:
            break
        reader.advance()
        text, end = f"{text}-{reader.advance().text}", part.end
    name = Token("name", text, first.start, end)
    if text not in METRICS:
        raise reader.fail(
            f"unknown metric {quoted(text)}",
            name,
            help=did_you_mean(text.replace("_", "-"), METRICS, _METRICS_HELP),
        )
    return name
