"""JX405: a value is NaN, or a `where` hides an operand whose derivative may be NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.failure_text import first_sentence, is_a, jax_page
from jaxsight.rules.program.bounds import ANY, Bounds
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule, is_flat
from jaxsight.rules.program.steps import is_inexact, is_known, numbers
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal, maker_of, stripped
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure
from jaxsight.wire.primitives import ELEMENTWISE, MOVES, ROUNDINGS
from jaxsight.wire.program import Step

RULE = Rule(
    "JX405",
    "nan",
    "NaN, or a `where` whose gradient may be NaN.",
    severity="warning",
)

_UP_TO_0, _AT_0 = ((-math.inf, 0.0),), ((0.0, 0.0),)
_FROM_1 = ((-math.inf, -1.0), (1.0, math.inf))
_UNSAFE: dict[str, tuple[int, Sequence[Bounds]]] = {
    "sqrt": (0, _UP_TO_0), "rsqrt": (0, _UP_TO_0), "log": (0, _UP_TO_0), "pow": (0, _UP_TO_0),
    "log1p": (0, ((-math.inf, -1.0),)), "div": (1, _AT_0), "cbrt": (0, _AT_0),
    "acosh": (0, ((-math.inf, 1.0),)), "acos": (0, _FROM_1), "asin": (0, _FROM_1),
    "atanh": (0, _FROM_1),
}  # fmt: skip
"""Primitives whose derivative is infinite or NaN somewhere: for which operand, and where."""

_OPPOSITE = {
    "gt": "le", "le": "gt", "ge": "lt", "lt": "ge", "eq": "ne", "ne": "eq",
    "is_finite": "is_not_finite",
}  # fmt: skip
_TURNED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}
_SAFE = "jnp.where(ok, f(jnp.where(ok, x, 1.0)), 0.0)"
_GUARDS = frozenset({"select_n", "max", "min", "clamp", "exp", "exp2", "logistic", "cosh"})
_FAR = 4
"""How many equations may be between an unsafe one and the `where`."""
_MOST = 20
"""How many equations of a condition are read."""


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize the `FloatingPointError` of JAX's NaN and infinity checkers."""
    if not is_a(failure, "FloatingPointError"):
        return None
    kind = "an infinite value" if "(inf)" in failure.message else "NaN"
    return Violation(
        f"{quoted(expression, 'this function')} returns {kind}",
        help=f"make the operand safe, not only the result: `{_SAFE}`",
        notes=(f"JAX's checker says: {first_sentence(failure.message)}",),
        url=jax_page(failure),
    )


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield selections by a condition on `x` that hide an unsafe function of that `x`.

    Functions with derivative rules of their own (`custom_jvp`, `custom_vjp`) are trusted. What is
    not differentiated is skipped: integers, `stop_gradient`, a selection that only comparisons
    read.
    """
    flow = view.flow
    for select in flow.steps.values():
        if select.primitive != "select_n" or len(select.operands) != 3 or select.backward:
            continue
        if not view.wrote(select.path, "where", "select"):
            continue
        if has_rule(view, select) or not _is_differentiated(flow, select):
            continue
        for chosen, case in zip((False, True), select.operands[1:], strict=True):
            hidden = _Hidden.of(flow, select.operands[0], not chosen)
            unsafe = next(_unsafe(flow, case, hidden), None)
            if unsafe is not None:
                form = _SAFE if chosen else "jnp.where(bad, 0.0, f(jnp.where(bad, 1.0, x)))"
                expression = quoted(view.quote(unsafe.path), "the operand")
                yield Violation(
                    "gradient of `where` may be NaN where the condition is "
                    f"{'false' if chosen else 'true'}",
                    select.path,
                    help=f"make the operand safe: `{form}`",
                    notes=(f"{expression} is differentiated there too, which may give NaN",),
                    related=((unsafe.path, "its derivative may be infinite or NaN"),)
                    if unsafe.span != select.span
                    else (),
                )
                break


def _is_differentiated(flow: Flow, select: Step) -> bool:
    """Whether a selection is inexact, and something differentiable reads it."""
    number = select.results[0]
    users = flow.used_by(number)
    if not is_inexact(flow.value(number)):
        return False
    if flow.of(number) in flow.outputs or not users:
        return True
    return not all(is_flat(flow, user) for user in users)


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Where a selection hides one of its cases: where any comparison says so, or where `all` do."""

    compared: tuple[tuple[int, Sequence[Bounds]], ...]
    """The values that comparisons are of, each with the numbers that it has there."""
    all: bool

    @staticmethod
    def of(flow: Flow, predicate: int, holds: bool) -> _Hidden:
        """Return where the predicate is `holds`."""
        compared: list[tuple[int, Sequence[Bounds]]] = []
        joined: set[str] = set()
        waiting = [(predicate, holds)]
        for _ in range(_MOST):
            if not waiting:
                break
            number, true = waiting.pop()
            step = flow.made_by(number)
            if step is None:
                continue
            if step.primitive in _OPPOSITE:
                compared += _implied(flow, step, true)
            elif step.primitive == "not":
                waiting.append((step.operands[0], not true))
            elif step.primitive in ("and", "or"):
                joined.add("all" if (step.primitive == "and") == true else "any")
                waiting += [(operand, true) for operand in step.operands]
            elif step.primitive in MOVES:
                waiting += [(operand, true) for operand in step.operands]
        return _Hidden(tuple(compared), joined == {"all"})

    def has(self, value: int, bad: Sequence[Bounds]) -> bool:
        """Whether a value is among those compared, and some of its bad numbers are hidden."""
        about = [bounds for compared, bounds in self.compared if compared == value]
        return bool(about) and (all if self.all else any)(
            any(low <= most and least <= high for low, high in bounds for least, most in bad)
            for bounds in about
        )


def _implied(flow: Flow, step: Step, true: bool) -> Iterator[tuple[int, Sequence[Bounds]]]:
    """Yield what a comparison implies for each side that varies, and for what that side is made of.

    Made of means: the operand of an absolute value or a root.
    """
    comparison = step.primitive if true else _OPPOSITE[step.primitive]
    for index, number in enumerate(step.operands):
        if flow.of(number) not in flow.varying:
            continue
        maker = maker_of(flow, number)
        of_two = len(step.operands) == 2
        bound = literal(flow, step.operands[1 - index]) if of_two else None
        if of_two and bound is None and maker is None:
            continue  # `x < width`, where `width` is an argument, is no guard against `width == 0`
        turned = comparison if index == 0 else _TURNED.get(comparison, comparison)
        bounds = _comparing(turned, bound)
        yield stripped(flow, number), bounds
        if maker is not None and (inner := _inner(maker, bounds)):
            yield stripped(flow, maker.operands[0]), inner


def _inner(step: Step, bounds: Sequence[Bounds]) -> list[Bounds]:
    """Return the numbers whose absolute value or root is one of these."""
    reached = [(low, high) for low, high in bounds if high >= 0]
    match step.primitive:
        case "abs":
            positive = [(max(low, 0), high) for low, high in reached]
            return [*positive, *((-high, -low) for low, high in positive)]
        case "sqrt":
            return [(low * low if low >= 0 else -math.inf, high * high) for low, high in reached]
        case _:
            return []


def _comparing(comparison: str, bound: float | None) -> list[Bounds]:
    """Return the numbers that compare so with a bound; all numbers if the bound is unknown."""
    if bound is None or math.isnan(bound):
        return [ANY]
    below = (-math.inf, math.nextafter(bound, -math.inf))
    above = (math.nextafter(bound, math.inf), math.inf)
    return {
        "gt": [above],
        "ge": [(bound, math.inf)],
        "lt": [below],
        "le": [(-math.inf, bound)],
        "eq": [(bound, bound)],
        "ne": [below, above],
    }[comparison]


def _has_derivative(flow: Flow, number: int) -> bool:
    """Whether a value depends on an inexact input by differentiable operations."""
    through = flow.sources(
        number, lambda step: bool(step.operands) and not is_flat(flow, step), most=500
    )
    return through is None or any(
        not is_known(flow.values[source])
        and flow.made_by(source) is None
        and is_inexact(flow.values[source])
        for source in through
    )


def _unsafe(flow: Flow, case: int, hidden: _Hidden) -> Iterator[Step]:
    """Yield unsafe equations near a case whose operand is compared, and bad where hidden."""
    waiting = [(case, 0)]
    while waiting:
        number, far = waiting.pop()
        step = flow.made_by(number)
        if step is None or far > _FAR or step.primitive in _GUARDS:
            continue
        which, bad = _UNSAFE.get(step.primitive, (0, ()))
        if step.primitive == "integer_pow" and min(numbers(step, "y"), default=1) < 0:
            bad = _AT_0
        if bad and hidden.has(stripped(flow, step.operands[which]), bad):
            ruled = step.path in flow.ruled or not is_inexact(flow.value(step.results[0]))
            if not ruled and _has_derivative(flow, step.operands[which]):
                yield step
            return
        if step.primitive in (ELEMENTWISE | MOVES) - {"stop_gradient"} - ROUNDINGS:
            waiting += [(operand, far + 1) for operand in step.operands]
