"""Write what another version of JAX changes: a table with lines below it, or JSON."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

from jaxsight.cli.output.printing import MOST_ROWS, Printer, print_rows, styled
from jaxsight.cli.upgrading.differences import Aspect, ComparedFunction
from jaxsight.cli.upgrading.examining import ExaminedFunction, ExaminedProject
from jaxsight.text import units
from jaxsight.text.inert import one_line
from jaxsight.text.units import count

_COLUMNS = ("function", "result", "kernels", "temp", "traffic", "trace", "compile")
_SIDES = "llrrrrr"
_IN_TABLE = frozenset(
    {
        Aspect.KERNELS, Aspect.TEMPORARIES, Aspect.TRAFFIC, Aspect.TRACE_TIME, Aspect.COMPILE_TIME,
    }
)  # fmt: skip
"""What the columns show; the lines below the table have the rest."""
_MOST_REASONS = 4
"""Reasons that a report without `--verbose` names, a choice: the most frequent."""


def print_report(
    printer: Printer,
    before: ExaminedProject,
    after: ExaminedProject,
    functions: Sequence[ComparedFunction],
    *,
    verbose: bool,
) -> None:
    """Print a row for each function that differs, or for all, and a summary."""
    shown = [each for each in functions if each.differences or verbose]
    if shown:
        rows = map(_row, shown[:MOST_ROWS])
        print_rows(printer, _COLUMNS, rows, _SIDES, len(shown))
        printer.print()
    for each in shown:
        for line in _lines(each, verbose=verbose):
            printer.print(one_line(line))
    worse = sum(each.is_worse for each in functions)
    differing = sum(bool(each.differences) for each in functions)
    versions = f"JAX {before.jax} → {after.jax}"
    target = f" on {after.target}" if after.target else ""
    summary = f"{versions}{target}: {count(len(functions), 'function')}, {differing} differ"
    printer.print(styled((one_line(f"{summary}, {worse} for the worse"), "bold")))
    failing = sum(each.fails_in_both for each in functions)
    reasons = Counter(each.not_compared for each in functions if each.not_compared)
    words = f"{count(failing, 'function')} cannot be traced or compiled under either version"
    left_out = [words] if failing else []
    left_out += [
        f"numbers of {count(number, 'function')} not compared: {reason}"
        for reason, number in reasons.most_common(_MOST_REASONS)
    ]
    if left_out and not verbose:
        for words in (*left_out, "list them with --verbose"):
            printer.print(styled((one_line(words), "dim")))


def _name(function: ComparedFunction) -> str:
    path, name = function.name
    return f"{os.path.relpath(path)}:{name}"


def _row(function: ComparedFunction) -> tuple[str, ...]:
    """Return the texts of a row: the figures that differ."""
    changed = {each.aspect for each in function.differences}
    sides = (function.before, function.after)
    costs = [each.costs for each in sides]

    def pair(aspect: Aspect, texts: Sequence[str | None]) -> str:
        if aspect not in changed:
            return ""
        old, new = (text or "–" for text in texts)
        amount, _, unit = old.rpartition(" ")
        is_same = amount and new.endswith(f" {unit}")  # `260 → 192 KiB`
        return f"{amount if is_same else old} → {new}"

    def size(aspect: Aspect, sizes: Sequence[int | None]) -> str:
        return pair(aspect, [None if each is None else units.size(each) for each in sizes])

    def time(aspect: Aspect, seconds: Sequence[float | None]) -> str:
        return pair(aspect, [None if each is None else units.time(each) for each in seconds])

    return (
        one_line(_name(function)),
        function.verdict,
        pair(Aspect.KERNELS, [None if each is None else str(len(each.kernels)) for each in costs]),
        size(Aspect.TEMPORARIES, [None if each is None else each.temporaries for each in costs]),
        size(Aspect.TRAFFIC, [None if each is None else each.traffic for each in costs]),
        time(Aspect.TRACE_TIME, [each.trace_seconds for each in sides]),
        time(Aspect.COMPILE_TIME, [each.compile_seconds for each in sides]),
    )


def _lines(function: ComparedFunction, *, verbose: bool) -> Iterator[str]:
    for each in function.differences:
        if each.aspect not in _IN_TABLE:
            is_placed = each.aspect is Aspect.ERROR and function.after.place
            where = f", line {function.after.place}" if is_placed else ""
            yield f"{_name(function)}{where}: {each.words}"
    if verbose and function.fails_in_both:
        yield f"{_name(function)}: {function.after.error}"
    if verbose and function.not_compared:
        yield f"{_name(function)}: numbers are not compared: {function.not_compared}"


def record(
    before: ExaminedProject, after: ExaminedProject, functions: Sequence[ComparedFunction]
) -> dict[str, object]:
    """Return the object that `--json` prints; sizes are in bytes, times in seconds."""
    return {
        "before": {"jax": before.jax, "python": before.python},
        "after": {"jax": after.jax, "python": after.python},
        "target": after.target,
        "worse": sum(each.is_worse for each in functions),
        "functions": [
            {
                "filename": each.name[0],
                "function": each.name[1],
                "inputs": each.before.described or each.after.described,
                "worse": each.is_worse,
                "differences": [
                    {"aspect": found.aspect.value, "words": found.words, "worse": found.is_worse}
                    for found in each.differences
                ],
                "not_compared": each.not_compared or None,
                "before": _side(each.before),
                "after": _side(each.after),
            }
            for each in functions
        ],
    }


def _side(function: ExaminedFunction) -> dict[str, object]:
    costs = function.costs
    return {
        "error": function.error or None,
        "line": function.place or None,
        "outputs": function.outputs or None,
        "deprecations": list(function.deprecations),
        "trace_seconds": function.trace_seconds,
        "compile_seconds": function.compile_seconds,
        "kernel_count": len(costs.kernels) if costs is not None else None,
        "launch_count": costs.launches if costs is not None else None,
        "temp_bytes": costs.temporaries if costs is not None else None,
        "moved_bytes": costs.traffic if costs is not None else None,
        "communicated_bytes": costs.moved if costs is not None else None,
    }
