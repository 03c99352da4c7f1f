"""JX405: a NaN appears, or a `where` hides an operand whose derivative is NaN."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.explained import Explained, explained, first_paragraph, is_a, quoted
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import ELEMENTWISE, SHAPED, Flow, Reading, is_known
from jaxsight.tracer.program import Step
from jaxsight.tracer.protocol import Failure

CODE = "JX405"

_UNSAFE: dict[str, int] = {
    "sqrt": 0, "rsqrt": 0, "log": 0, "div": 1, "pow": 0, "acos": 0, "asin": 0, "acosh": 0, "atanh": 0, "cbrt": 0, "log1p": 0,
}  # fmt: skip
"""Primitives whose derivative is infinite or NaN somewhere, and which operand makes it so."""

_COMPARES = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "is_finite"})
_MOVES = SHAPED | {"convert_element_type", "copy", "stop_gradient"}
_GUARDS = frozenset({"select_n", "max", "min", "clamp", "exp", "exp2", "logistic", "cosh"})
_FAR = 4
"""How many equations an unsafe one may be away from the `where`."""


def explain(failure: Failure, expression: str) -> Explained | None:
    """Recognises the `FloatingPointError` of JAX's NaN and infinity checkers."""
    if not is_a(failure, "FloatingPointError"):
        return None
    return explained(
        CODE,
        f"{quoted(expression)} gives a value that is not a number: {first_paragraph(failure.message)}. "
        "Guard the operand itself, not only the result: `jnp.where(ok, f(jnp.where(ok, x, 1)), 0)`.",
        failure,
    )


def find(reading: Reading) -> Iterator[Noticed]:
    """Each selection by a condition on `x` between values of which one is an unsafe function of the same, unguarded `x`."""
    flow = reading.flow
    for select in flow.steps.values():
        if select.primitive != "select_n" or len(select.operands) != 3 or select.backward:
            continue
        if select.path in flow.ruled or not reading.wrote(select.path, "where", "select"):
            continue
        compared = _compared(flow, select.operands[0])
        if not compared:
            continue
        for case in select.operands[1:]:
            unsafe = next(_unsafe(flow, case, compared), None)
            if unsafe is not None:
                yield Noticed(
                    CODE,
                    f"{reading.quoted(select.path)} hides the values of {reading.quoted(unsafe.path)} that are not meant, but not their "
                    "derivative: where the condition does not hold it is NaN or infinite, times zero, which is NaN. Make the operand "
                    "safe first (`jnp.where(ok, f(jnp.where(ok, x, 1.0)), 0.0)`).",
                    select.path,
                    related=((unsafe.path, "its derivative is not finite everywhere"),)
                    if unsafe.span != select.span
                    else (),
                )
                break


def _compared(flow: Flow, predicate: int) -> set[int]:
    """The values that a condition is about, as far as moves and conversions lead back."""
    found: set[int] = set()
    for step in flow.above(
        predicate, lambda each: each.primitive in _MOVES | {"and", "or", "not"}, 20
    ):
        if step.primitive in _COMPARES:
            for number in step.operands:
                found |= _roots(flow, number)
    return {number for number in found if _varies(flow, number)}


def _varies(flow: Flow, number: int) -> bool:
    """Whether a value depends on an input: of what is known while tracing there is no derivative."""
    sources = flow.sources(number, lambda step: bool(step.operands), most=500)
    return sources is None or not all(is_known(flow.values[each]) for each in sources)


def _roots(flow: Flow, number: int) -> set[int]:
    """A value and what it is moved from."""
    found = {flow.of(number)}
    step = flow.made_by(number)
    while step is not None and step.primitive in _MOVES and step.operands:
        found.add(flow.of(step.operands[0]))
        step = flow.made_by(step.operands[0])
    return found


def _unsafe(flow: Flow, case: int, compared: set[int]) -> Iterator[Step]:
    """The unsafe steps near above a case whose risky operand is one of those compared."""
    waiting = [(case, 0)]
    while waiting:
        number, far = waiting.pop()
        step = flow.made_by(number)
        if step is None or far > _FAR or step.primitive in _GUARDS:
            continue
        risky = _UNSAFE.get(step.primitive)
        if step.primitive == "integer_pow":
            risky = 0 if dict(step.parameters).get("y", "1").startswith("-") else None
        if (
            risky is not None
            and risky < len(step.operands)
            and _roots(flow, step.operands[risky]) & compared
        ):
            yield step
            return
        if step.primitive in ELEMENTWISE | _MOVES:
            waiting += [(each, far + 1) for each in step.operands]
