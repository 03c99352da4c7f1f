"""JX405: a value is NaN, or a `where` hides an operand whose derivative may be NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.failure_text import first_sentence, is_a, jax_page
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule
from jaxsight.rules.program.steps import is_inexact, is_known
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.walks import literal
from jaxsight.rules.rule import Rule
from jaxsight.rules.violation import Violation
from jaxsight.rules.wording import quoted
from jaxsight.wire.observations import Failure
from jaxsight.wire.primitives import ELEMENTWISE, SHAPED
from jaxsight.wire.program import Step

RULE = Rule(
    "JX405",
    "nan",
    "NaN, or a `where` whose gradient may be NaN.",
    severity="warning",
)


@dataclass(frozen=True, slots=True)
class _Numbers:
    """An interval of numbers, with its ends or without them."""

    least: float = -math.inf
    most: float = math.inf
    closed: bool = True

    def meets(self, numbers: _Numbers) -> bool:
        """Whether two intervals have a number in common."""
        least, most = max(self.least, numbers.least), min(self.most, numbers.most)
        return least < most or (least == most and self._has(least) and numbers._has(least))

    def _has(self, number: float) -> bool:
        return self.closed or self.least < number < self.most


_UP_TO_0 = (_Numbers(most=0),)
_AT_0 = (_Numbers(0, 0),)
_FROM_1 = (_Numbers(most=-1), _Numbers(least=1))

_UNSAFE: dict[str, tuple[int, tuple[_Numbers, ...]]] = {
    "sqrt": (0, _UP_TO_0), "rsqrt": (0, _UP_TO_0), "log": (0, _UP_TO_0), "pow": (0, _UP_TO_0),
    "log1p": (0, (_Numbers(most=-1),)), "div": (1, _AT_0), "cbrt": (0, _AT_0),
    "acosh": (0, (_Numbers(most=1),)), "acos": (0, _FROM_1), "asin": (0, _FROM_1),
    "atanh": (0, _FROM_1),
}  # fmt: skip
"""Primitives whose derivative is infinite or NaN somewhere: for which operand, and where."""

_OPPOSITE = {
    "gt": "le", "le": "gt", "ge": "lt", "lt": "ge", "eq": "ne", "ne": "eq",
    "is_finite": "is_not_finite",
}  # fmt: skip
_TURNED = {"gt": "lt", "lt": "gt", "ge": "le", "le": "ge", "eq": "eq", "ne": "ne"}
_MOVES = SHAPED | {"convert_element_type", "copy", "stop_gradient"}
_GUARDS = frozenset({"select_n", "max", "min", "clamp", "exp", "exp2", "logistic", "cosh"})
_FAR = 4
"""How many equations may be between an unsafe one and the `where`."""


@RULE.explains
def explain(failure: Failure, expression: str, line: str) -> Violation | None:
    """Recognize the `FloatingPointError` of JAX's NaN and infinity checkers."""
    if not is_a(failure, "FloatingPointError"):
        return None
    kind = "an infinite value" if "(inf)" in failure.message else "NaN"
    return Violation(
        f"{quoted(expression, 'this function')} returns {kind}",
        help="make the operand safe, not only the result: "
        "`jnp.where(ok, f(jnp.where(ok, x, 1.0)), 0.0)`",
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
                form = (
                    "jnp.where(ok, f(jnp.where(ok, x, 1.0)), 0.0)"
                    if chosen
                    else "jnp.where(bad, 0.0, f(jnp.where(bad, 1.0, x)))"
                )
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
    return not all(_stops(flow, user) for user in users)


def _stops(flow: Flow, step: Step) -> bool:
    """Whether derivatives stop at an equation."""
    if step.primitive in _FLAT or step.primitive == "stop_gradient":
        return True
    return bool(step.results) and not any(is_inexact(flow.value(n)) for n in step.results)


_FLAT = frozenset({"floor", "ceil", "round", "sign"})
"""Primitives whose derivative is zero everywhere."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One comparison's part of where a case is hidden: where a value is one of these numbers."""

    value: frozenset[int]
    numbers: tuple[_Numbers, ...]

    def meets(self, bad: Sequence[_Numbers]) -> bool:
        return any(number.meets(bad_numbers) for number in self.numbers for bad_numbers in bad)


@dataclass(frozen=True, slots=True)
class _Hidden:
    """Where a selection hides one of its cases: where any part applies, or only where `all` do."""

    parts: tuple[_Part, ...]
    all: bool

    @staticmethod
    def of(flow: Flow, predicate: int, holds: bool) -> _Hidden:
        """Return where the predicate is `holds`."""
        parts: list[_Part] = []
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
                parts += _parts(flow, step, true)
            elif step.primitive == "not":
                waiting.append((step.operands[0], not true))
            elif step.primitive in ("and", "or"):
                joined.add("all" if (step.primitive == "and") == true else "any")
                waiting += [(operand, true) for operand in step.operands]
            elif step.primitive in _MOVES:
                waiting += [(operand, true) for operand in step.operands]
        return _Hidden(tuple(parts), joined == {"all"})

    def meets(self, value: set[int], bad: Sequence[_Numbers]) -> bool:
        """Whether a value is among those compared, and some of its bad numbers are hidden."""
        about = [part for part in self.parts if part.value & value]
        return bool(about) and (all if self.all else any)(part.meets(bad) for part in about)


_MOST = 20
"""How many equations of a condition are read."""


def _parts(flow: Flow, step: Step, true: bool) -> Iterator[_Part]:
    """Yield what a comparison implies for each side that varies, and for what that side is made of.

    Made of means: the operand of an absolute value or a root.
    """
    comparison = step.primitive if true else _OPPOSITE[step.primitive]
    for index, number in enumerate(step.operands):
        if not _varies(flow, number):
            continue
        side = _roots(flow, number)
        of_two = len(step.operands) == 2
        bound = literal(flow, step.operands[1 - index]) if of_two else None
        if of_two and bound is None and any(flow.made_by(root) is None for root in side):
            continue  # `x < width`, where `width` is an argument, is no guard against `width == 0`
        turned = comparison if index == 0 else _TURNED.get(comparison, comparison)
        numbers = _numbers(turned, bound)
        yield _Part(frozenset(side), numbers)
        for maker in filter(None, map(flow.made_by, side)):
            inner = _inner(maker, numbers)
            if inner:
                yield _Part(frozenset(_roots(flow, maker.operands[0])), inner)


def _inner(step: Step, numbers: Sequence[_Numbers]) -> tuple[_Numbers, ...]:
    """Return the numbers whose absolute value or root is one of these."""
    match step.primitive:
        case "abs":
            positive = [_Numbers(max(n.least, 0), n.most, n.closed) for n in numbers if n.most >= 0]
            return tuple(
                operand
                for n in positive
                for operand in (
                    [_Numbers(-n.most, n.most, n.closed)]
                    if n.least == 0
                    else [n, _Numbers(-n.most, -n.least, n.closed)]
                )
            )
        case "sqrt":
            return tuple(
                _Numbers(n.least**2 if n.least > 0 else -math.inf, n.most**2, n.closed)
                if n.least < n.most or n.least > 0
                else _Numbers(0, 0)
                for n in numbers
                if n.most >= 0
            )
        case _:
            return ()


def _numbers(comparison: str, bound: float | None) -> tuple[_Numbers, ...]:
    """Return the numbers that compare so with a bound; all numbers if the bound is unknown."""
    if bound is None or math.isnan(bound):
        return (_Numbers(),)
    match comparison:
        case "gt" | "ge":
            return (_Numbers(least=bound, closed=comparison == "ge"),)
        case "lt" | "le":
            return (_Numbers(most=bound, closed=comparison == "le"),)
        case "eq":
            return (_Numbers(bound, bound),)
        case "ne":
            return (_Numbers(most=bound, closed=False), _Numbers(least=bound, closed=False))
        case _:
            return (_Numbers(),)


def _varies(flow: Flow, number: int) -> bool:
    """Whether a value depends on an input; what is known while tracing has no derivative."""
    sources = flow.sources(number, lambda step: bool(step.operands), most=500)
    return sources is None or not all(is_known(flow.values[source]) for source in sources)


def _has_derivative(flow: Flow, number: int) -> bool:
    """Whether a value depends on an inexact input by differentiable operations."""
    through = flow.sources(
        number, lambda step: bool(step.operands) and not _stops(flow, step), most=500
    )
    return through is None or any(
        not is_known(flow.values[source])
        and flow.made_by(source) is None
        and is_inexact(flow.values[source])
        for source in through
    )


def _roots(flow: Flow, number: int) -> set[int]:
    """Return a value and the values that it is a moved or reshaped copy of."""
    roots = {flow.of(number)}
    step = flow.made_by(number)
    while step is not None and step.primitive in _MOVES and step.operands:
        roots.add(flow.of(step.operands[0]))
        step = flow.made_by(step.operands[0])
    return roots


def _unsafe(flow: Flow, case: int, hidden: _Hidden) -> Iterator[Step]:
    """Yield unsafe equations near a case whose operand is compared, and bad where hidden."""
    waiting = [(case, 0)]
    while waiting:
        number, far = waiting.pop()
        step = flow.made_by(number)
        if step is None or far > _FAR or step.primitive in _GUARDS:
            continue
        which, bad = _UNSAFE.get(step.primitive, (0, ()))
        if step.primitive == "integer_pow" and dict(step.parameters).get("y", "1").startswith("-"):
            bad = _AT_0
        risky = _roots(flow, step.operands[which]) if bad and which < len(step.operands) else set()
        if hidden.meets(risky, bad):
            ruled = step.path in flow.ruled or not is_inexact(flow.value(step.results[0]))
            if not ruled and _has_derivative(flow, step.operands[which]):
                yield step
            return
        if step.primitive in (ELEMENTWISE | _MOVES) - {"stop_gradient"} - _FLAT:
            waiting += [(operand, far + 1) for operand in step.operands]
