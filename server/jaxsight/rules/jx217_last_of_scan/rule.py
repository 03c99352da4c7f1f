"""JX217: a scan stacks a value of each iteration, and only that of the last one is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.slices import reads
from jaxsight.rules.program.steps import numbers, parameter
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import alike
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import called
from jaxsight.rules.violation import Violation
from jaxsight.wire.program import Step
from jaxsight_source.units import KIB, size

RULE = Rule(
    "JX217",
    "last-of-scan",
    "Outputs of a scan stacked to read only the last.",
    severity="warning",
)

FEWEST = 4
"""Iterations, and half of the values of a running total, a choice: what fewer stack is little."""
LEAST = KIB
"""Bytes of the stacked arrays, unless the final carry already is what is read, a choice: lower
reports scans of numbers, higher the losses of a short run."""

_TOTALS = {
    "cumsum": "sum",
    "cumprod": "prod",
    "cummax": "max",
    "cummin": "min",
    "cumlogsumexp": "logsumexp",
}
"""Running totals, and the function that gives the last one alone."""


@dataclass(frozen=True, slots=True)
class Stacked:
    """What a scan stacks in vain."""

    carried: bool
    """Whether the final carry is the same."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield scans and running totals of which only the last element is read."""
    for step in view.flow.forward_steps("scan", *_TOTALS):
        violation = _scan(view, step) if step.primitive == "scan" else _total(view, step)
        if violation is not None:
            yield violation


def _scan(view: ProgramView, step: Step) -> Violation | None:
    flow, name = view.flow, called(view.quote(step.path))
    length = next(iter(numbers(step, "length")), 0)
    if name not in ("scan", "map") or length < FEWEST or not step.bodies:
        return None
    outputs = step.bodies[0].outputs
    last = 0 if parameter(step, "reverse") is True else length - 1
    total, carried = 0, True
    for stacked, output in zip(step.results, outputs, strict=False):
        shape = flow.value(stacked).shape
        if shape != (length, *flow.value(output).shape) or not _is_only_read_at(
            flow, stacked, last
        ):
            continue
        total += flow.value(stacked).bytes
        carried &= any(
            alike(flow, row, output)
            for final, row in zip(step.results, outputs, strict=False)
            if flow.value(final).shape == flow.value(row).shape
        )
    if not total or (total < LEAST and not carried):
        return None
    which = "first" if last == 0 else "last"
    if name == "map":
        help = f"call the function with the {which} row alone"
        words = (
            f"`map` computes {length:,} results ({size(total)}), of which only the {which} is read"
        )
        return Violation(words, step.path, help=help, data=Stacked(carried=False))
    return Violation(
        f"scan stacks {length:,} outputs ({size(total)}), of which only the {which} is read",
        step.path,
        help="use the final carry, and return `None` in place of the output"
        if carried
        else "return the value in the carry, and `None` in place of the output",
        data=Stacked(carried),
    )


def _total(view: ProgramView, step: Step) -> Violation | None:
    flow, name = view.flow, called(view.quote(step.path))
    axis = next(iter(numbers(step, "axis")), -1)
    length = flow.value(step.results[0]).shape[axis]
    if name not in (*_TOTALS, "cumulative_sum", "cumulative_prod") or length < 2 * FEWEST:
        return None
    last = 0 if parameter(step, "reverse") is True else length - 1
    if not _is_only_read_at(flow, step.results[0], last, axis):
        return None
    function = _TOTALS[step.primitive]
    module = "jax.nn" if function == "logsumexp" else "jnp"
    return Violation(
        f"running total of {length:,} values, of which only the last is read",
        step.path,
        help=f"use `{module}.{function}`",
    )


def _is_only_read_at(flow: Flow, number: int, index: int, axis: int = 0) -> bool:
    """Whether a value is read, and only at one place along an axis."""
    parts = reads(flow, number, axis)
    return bool(parts) and all(part.first == part.last == index for part in parts or ())
