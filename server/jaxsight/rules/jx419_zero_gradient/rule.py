"""JX419: a gradient that is zero everywhere, because of an operation without a derivative."""

# Longer than most rules: zeros of a program have to be told to be gradients, and followed to what
# makes them.

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.guards import has_rule, is_flat
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import bracketed, called, parsed
from jaxsight.rules.wording import MOST, short
from jaxsight.wire.primitives import COMPARISONS, ROUNDINGS
from jaxsight.wire.program import LITERAL, ProgramValue, Step

RULE = Rule(__name__, "Gradient that is zero everywhere.", severity="warning")

_DERIVATIVES = frozenset(
    {
        "grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "filter_grad",
        "filter_value_and_grad", "filter_jacfwd", "filter_jacrev", "filter_hessian", "jvp", "vjp",
        "linearize",
    }
)  # fmt: skip
_STEPS = COMPARISONS | {"is_finite"}
_INDICES = frozenset({"argmax", "argmin", "argsort", "argpartition", "searchsorted", "digitize"})
_ROUNDINGS = frozenset({"round", "rint", "floor", "ceil", "trunc", "fix", "sign", "floor_divide"})
_DRAWS = frozenset({"categorical", "bernoulli", "randint", "poisson", "binomial", "choice"})
_SMOOTH = "use a smooth function in place of the step, such as `jax.nn.sigmoid(10 * x)`"
_SIGNS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
_LONGEST = 32
"""Characters of an expression in a message: of a longer one only the operation is named."""
_FAR = 2_000
"""How many equations are followed from one value: more take long, and nothing is reported then."""


@dataclass(frozen=True, slots=True)
class _Dead:
    """A value whose gradient is zero, and the equations that make it so."""

    value: int
    ends: tuple[Step, ...]
    name: str
    """Empty where it is not known, or where other values are of the same type."""
    times: int = 1
    """How often zeros stand for its gradient: the program may have several derivatives."""


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield operations without a derivative that all of a gradient would have to pass.

    Functions with derivative rules of their own are trusted. So is `jax.lax.stop_gradient`, except
    where it is around all that is differentiated.
    """
    by_place: dict[object, tuple[Step, list[str]]] = {}
    for dead in _dead(view):
        for end in _chosen(view, dead):
            by_place.setdefault(end.span or end.path, (end, []))[1].append(dead.name)
    for step, names in by_place.values():
        parameters = [f"`{name}`" for name in names if name]
        of = f" with respect to {parameters[0]}" if parameters else ""
        if len(parameters) > 1:
            of += f" and {len(parameters) - 1} other{'s' if len(parameters) > 2 else ''}"
        written = view.quoted(step.path)
        if len(written) > _LONGEST or step.primitive == "stop_gradient":
            written = f"`{_operation(view, step)}`"
        message = f"gradient{of} is always 0 because of {written}"
        if len(message) > MOST:
            message = f"gradient is always 0 because of {written}"
        yield Violation(message, step.path, help=_help(view, step), notes=(_note(view, step),))


def _operation(view: ProgramView, step: Step) -> str:
    """Return the name of the function or the sign of the operator that the user wrote."""
    if step.primitive == "stop_gradient":
        return step.primitive
    if isinstance(parsed(view.quote(step.path)), ast.Compare):
        return _SIGNS.get(step.primitive, "comparison")
    return view.called(step) or step.primitive


def _help(view: ProgramView, step: Step) -> str:
    text = view.quote(step.path)
    node, name = parsed(text), called(text)
    if name in _DRAWS:
        return "differentiate a relaxation (Gumbel-softmax) or use a score-function estimator"
    is_floor = isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)
    if step.primitive in ROUNDINGS or name in _ROUNDINGS or is_floor:
        argument, rounded = "x", "rounded"
        if isinstance(node, ast.Call) and node.args and name in _ROUNDINGS:
            argument = short(ast.unparse(node.args[0]))
            rounded = short(text) if argument != "x" else rounded
        return (
            "use a straight-through estimator: "
            f"`{argument} + jax.lax.stop_gradient({rounded} - {bracketed(argument)})`"
        )
    if step.primitive in _INDICES or name in _INDICES:
        return "use the values themselves, such as `jax.nn.softmax(x)`"
    if step.primitive in _STEPS:
        return _SMOOTH
    if step.primitive == "stop_gradient":
        return "apply `stop_gradient` to the parts that are constant only"
    return "keep floating-point numbers up to the result"


def _note(view: ProgramView, step: Step) -> str:
    if step.primitive in ROUNDINGS:
        return f"the derivative of `{step.primitive}` is 0 wherever it exists"
    if step.primitive in _STEPS and view.called(step) not in _INDICES:
        return "the derivative of a comparison is 0 wherever it exists"
    if step.primitive == "stop_gradient":
        return "JAX treats the result of `stop_gradient` as a constant"
    return "JAX does not differentiate through integers and booleans"


def _dead(view: ProgramView) -> Iterator[_Dead]:
    """Yield values whose gradient is asked for, used, and zero."""
    flow = view.flow
    by_parent: dict[str, list[Step]] = {}
    for step in flow.steps.values():
        if step.forward and not step.backward:
            around = flow.parent.get(step.path)
            if around is None or not around.forward:
                by_parent.setdefault(around.path if around else "", []).append(step)
    for parent, steps in by_parent.items():
        yield from _of_derivative(view, parent, steps)
    if not by_parent and view.differentiated:
        yield from _of_function(view)


def _of_derivative(view: ProgramView, parent: str, steps: Sequence[Step]) -> Iterator[_Dead]:
    """Yield values whose gradient a program has as zeros."""
    flow = view.flow
    zeros = list(_zeros(view, parent))
    if not zeros:
        return
    inside = {step.path for step in steps}
    computed = {flow.of(number) for step in steps for number in step.results}
    entries = [
        number
        for step in steps
        for number in map(flow.of, step.operands)
        if number not in computed
        and not flow.values[number].is_constant
        and flow.value(number).is_inexact
    ]
    alive = any(step.backward for step in flow.steps.values())
    dead_inputs: list[tuple[int, list[Step], int]] = []
    for number in dict.fromkeys(entries):
        rank = max(_rank(flow, zero, number) for zero, _ in zeros)
        ends = _ends(flow, number, inside, frozenset()) if rank else None
        if ends and not (alive and _is_stopped(ends)):
            dead_inputs.append((number, ends, rank))
    best = max((rank for _, _, rank in dead_inputs), default=0)
    chosen = [(number, ends) for number, ends, rank in dead_inputs if rank == best]
    if any(not _is_stopped(ends) for _, ends in chosen):
        chosen = [(number, ends) for number, ends in chosen if not _is_stopped(ends)]
    for number, ends in chosen:
        like = [
            chosen_number
            for chosen_number, _ in chosen
            if flow.values[chosen_number].text == flow.values[number].text
        ]
        places = [position for zero, position in zeros if _rank(flow, zero, number) == best]
        name = flow.values[number].said if len(like) <= len(places) else ""
        yield _Dead(number, tuple(ends), name, len(set(places)))


def _is_stopped(ends: Sequence[Step]) -> bool:
    return all(step.primitive == "stop_gradient" for step in ends)


def _of_function(view: ProgramView) -> Iterator[_Dead]:
    """Yield inputs that the module differentiates the function by, where that gives zeros.

    `jax.vjp`, `jax.jvp` and `jax.linearize` differentiate by all arguments, so that conditions and
    indices are among them: these are reported only if no argument has a gradient.
    """
    flow = view.flow
    if not flow.outputs or not all(flow.value(number).is_inexact for number in flow.outputs[:1]):
        return
    scalar = not flow.values[flow.outputs[0]].shape
    outputs = frozenset(flow.outputs[:1] if scalar else flow.outputs)
    inside = {path for path in flow.steps if path not in flow.parent}
    needed: set[int] = set()
    for number in outputs:
        needed |= flow.sources(number, lambda _: True, len(flow.values)) or set()
    dead_inputs: list[_Dead] = []
    alive = False
    for number in flow.inputs:
        if not flow.value(number).is_inexact or flow.of(number) not in needed:
            continue
        ends = _ends(flow, flow.of(number), inside, outputs)
        alive |= ends is None
        if ends and _parameter(flow, number) in view.differentiated:
            dead_inputs.append(_Dead(number, tuple(ends), flow.values[number].said))
    for dead in dead_inputs:
        name = _parameter(flow, dead.value)
        if not alive or (name in view.chosen and not _is_stopped(dead.ends)):
            yield dead


def _parameter(flow: Flow, number: int) -> str:
    """Return the parameter that an input is, or is a part of."""
    return flow.values[number].said.split("[")[0].split(".")[0]


def _ends(flow: Flow, number: int, inside: set[str], outputs: frozenset[int]) -> list[Step] | None:
    """Return the equations without a derivative that all paths from a value end at.

    Return `None` where a path goes on to an output, or to a value that nothing reads.
    """
    waiting, visited = [number], set[int]()
    ends: dict[str, Step] = {}
    while waiting:
        reached = flow.of(waiting.pop())
        if reached in visited:
            continue
        visited.add(reached)
        users = [user for user in flow.used_by(reached) if user.path in inside]
        if reached in outputs or len(visited) > _FAR:
            return None
        if not users and not outputs and not _is_factor(flow, reached):
            return None
        for user in users:
            inexact = [output for output in user.results if flow.value(output).is_inexact]
            read = [output for output in inexact if flow.used_by(output) or output in outputs]
            if is_flat(flow, user) or (not read and any(map(flow.used_by, user.results))):
                ends[user.path] = user
            else:
                waiting += read or inexact
    return list(ends.values())


def _is_factor(flow: Flow, number: int) -> bool:
    """Return whether a value is the unused factor of a derivative.

    Such a factor is computed where another equation reads the same value, or one just before.
    """
    step = flow.producer(number)
    if step is None or flow.used_by(number) or number in flow.outputs:
        return False
    return _is_beside(flow, step, 3)


def _is_beside(flow: Flow, step: Step, depth: int) -> bool:
    """Whether another equation of the same expression reads what this one comes from."""
    for operand in step.operands:
        users = flow.used_by(operand)
        if any(user.span == step.span and user.path != step.path for user in users):
            return True
        before = flow.producer(operand)
        alone = before is not None and before.span == step.span and len(users) == 1
        if before is not None and alone and depth and _is_beside(flow, before, depth - 1):
            return True
    return False


def _chosen(view: ProgramView, dead: _Dead) -> list[Step]:
    """Return the first equations that the user wrote, one for each derivative.

    There are none where one has a derivative rule of its own.
    """
    if any(has_rule(view, step) for step in dead.ends):
        return []
    flow = view.flow
    own = [step for step in dead.ends if not _is_of_rule(flow, step)] or dead.ends
    candidates = [step for step in own if step.primitive != "stop_gradient"] or own
    by_span = {step.span: step for step in reversed(candidates) if view.quote(step.path)}
    return list(by_span.values())[::-1][: dead.times]


def _is_of_rule(flow: Flow, step: Step) -> bool:
    """Return whether an equation belongs to a derivative rule, as the comparison in that of `relu`.

    Then another equation of the same expression has a derivative.
    """
    return any(
        user.path != step.path and user.span == step.span and not is_flat(flow, user)
        for operand in step.operands
        for user in flow.used_by(operand)
    )


def _zeros(view: ProgramView, parent: str) -> Iterator[tuple[ProgramValue, object]]:
    """Yield the zeros that a program has in place of gradients, each with its place."""
    flow = view.flow
    for step in flow.steps.values():
        around = flow.parent.get(step.path)
        if step.forward or step.backward or (around.path if around else "") != parent:
            continue
        zeros = [number for number in step.operands if flow.literal(number) == 0]
        if step.primitive == "broadcast_in_dim" and zeros:
            if _is_of_derivative(view, step):
                yield flow.value(step.results[0]), step.span
        elif zeros and all(flow.value(number).is_constant for number in step.operands):
            yield flow.value(zeros[0]), step.span
    for number in flow.outputs:
        if flow.literal(number) == 0 and flow.values[number].origin == LITERAL:
            yield flow.values[number], number


def _rank(flow: Flow, zeros: ProgramValue, number: int) -> int:
    """Return 2 for zeros that are like a value, 1 for those that are without its batch axis."""
    value = flow.values[number]
    if zeros.dtype != value.dtype:
        return 0
    if zeros.shape == value.shape:
        return 2
    return 1 if zeros.shape and zeros.shape == value.shape[1:] else 0


def _is_of_derivative(view: ProgramView, step: Step) -> bool:
    """Whether an equation was made by the user's call of a function that computes derivatives."""
    node = parsed(view.quote(step.path))
    if not isinstance(node, ast.Call):
        return False
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(node.func if not view.called(step) else node)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return not names.isdisjoint(_DERIVATIVES | view.gradients)
