"""Pretty style: `lax.map` and `lax.fori_loop`, which trace to scans and whiles.

A loop is written as one of them only if its body is exactly the one that this function creates,
with the counter's equation first.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import numpy as np

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.jaxpr_types import Atom, Equation, Var
from jaxsight_source.compat.staging import Program, is_literal
from jaxsight_source.equations.registry import PRETTY_STRUCTURES
from jaxsight_source.proof.prover import Proved
from jaxsight_source.rules.lax.control import scan_hands_on, while_hands_on
from jaxsight_source.text.exprs import call
from jaxsight_source.values.spelling import scalar
from jaxsight_source.writing import variables
from jaxsight_source.writing.scope import Scope


@PRETTY_STRUCTURES("scan")
def scan(scope: Scope, equation: Equation) -> Proved | None:
    loop = control_flow.scan(equation.params)
    if loop.reverse or loop.unroll != 1 or loop.split_transpose or scan_hands_on(loop):
        return None
    if loop.carry == 0:
        return _map(scope, equation, loop)
    inputs = len(equation.invars) - loop.consts
    if inputs != loop.carry or len(equation.outvars) != loop.carry:
        return None
    first = equation.invars[loop.consts]
    if not is_literal(first) or first.aval.shape != () or first.aval.dtype != np.int32:
        return None
    start = int(first.val)
    counted = _without_counter(loop.body, loop.consts)
    if counted is None or not _unused(scope, equation.outvars[0]):
        return None
    bounds = [_bound(first, start), _bound(first, start + loop.length)]
    return _fori(scope, equation, counted, loop.consts, bounds, loop.consts + 1)


def _map(scope: Scope, equation: Equation, loop: control_flow.Scan) -> Proved | None:
    count = len(equation.outvars)
    xs = equation.invars[loop.consts :]
    if not xs or not count:
        return None
    binders = loop.body.jaxpr.invars[loop.consts :]
    operands = scope.operands(xs, binders)
    unnamed = ["x"] * loop.consts + variables.slices_of(operands)
    body = scope.function(
        "body",
        loop.body,
        equation.invars[: loop.consts],
        lambda inner, inputs, bases: (inner.grouped(inputs, bases, "xs"),),
        unnamed=unnamed,
    )
    return Proved(
        call("lax.map", body, variables.sequence(operands)), variables.nested_results(count)
    )


@PRETTY_STRUCTURES("while")
def while_(scope: Scope, equation: Equation) -> Proved | None:
    condition, conds, body, captured, carry = control_flow.while_loop(equation, equation.invars)
    cond, consts = condition.jaxpr, len(captured)
    if conds or len(cond.eqns) != 1 or len(cond.invars) < 3:
        return None
    if while_hands_on(condition, 0, body, consts):
        return None
    (test,) = cond.eqns
    if test.primitive.name != "lt" or not all(
        a is b for a, b in zip(test.invars, cond.invars[:2], strict=True)
    ):
        return None
    upper = body.jaxpr.invars[consts + 1]
    counted = _without_counter(body, consts)
    if counted is None or body.jaxpr.outvars[1] is not upper or _reads(counted, upper):
        return None
    first, last, *_ = carry
    if not all(_unused(scope, var) for var in equation.outvars[:2]):
        return None
    bounds = [
        _bound(atom, atom.val) if is_literal(atom) else scope.read(atom) for atom in (first, last)
    ]
    bases = variables.argument_bases(body)
    body_program = variables.with_parts(
        counted,
        invars=[var for var in counted.jaxpr.invars if var is not upper],
        outvars=counted.jaxpr.outvars[1:],
        debug_info=None,
    )
    own_bases = [*bases[: consts + 1], *bases[consts + 2 :]]
    return _fori(scope, equation, body_program, consts, bounds, consts + 2, own_bases)


def _fori(
    scope: Scope,
    equation: Equation,
    body: Program,
    consts: int,
    bounds: Sequence[ast.expr],
    start: int,
    bases: str | Sequence[str] = "x",
) -> Proved:
    """Write the loop; its values are the equation's inputs from `start` on."""
    binders = body.jaxpr.invars

    def parameters(inner: Scope, inputs: Sequence[Var], names: list[str]) -> tuple[str, ...]:
        (index,) = inner.parameters(inputs[:1], ["i"])
        return index, inner.grouped(inputs[1:], names[1:], "carry")

    captured = equation.invars[:consts]
    written = scope.function("body", body, captured, parameters, unnamed=bases)
    init = scope.operands(equation.invars[start:], binders[consts + 1 :])
    skipped = start - consts
    count = len(equation.outvars)
    results: object = skipped if count - skipped == 1 else tuple(range(skipped, count))
    return Proved(call("lax.fori_loop", *bounds, written, variables.sequence(init)), results)


def _bound(atom: Atom, value: object) -> ast.expr:
    number = np.asarray(value, atom.aval.dtype)
    return scalar(number, bool(getattr(atom.aval, "weak_type", False)))


def _without_counter(body: Program, consts: int) -> Program | None:
    """Return a body without its first equation, which counts, and without the counter's result.

    Return None if it does not count.
    """
    jaxpr = body.jaxpr
    if len(jaxpr.invars) < consts + 2 or not jaxpr.eqns:
        return None
    index, first = jaxpr.invars[consts], jaxpr.eqns[0]
    if first.primitive.name != "add" or first.invars[0] is not index:
        return None
    step = first.invars[1]
    if (
        not is_literal(step)
        or np.asarray(step.val) != 1
        or first.outvars[0] is not jaxpr.outvars[0]
    ):
        return None
    counted = variables.with_parts(body, eqns=jaxpr.eqns[1:], outvars=jaxpr.outvars[1:])
    return None if _reads(counted, first.outvars[0]) else counted


def _reads(program: Program, var: Var) -> bool:
    return any(atom is var for equation in program.jaxpr.eqns for atom in equation.invars)


def _unused(scope: Scope, var: Var) -> bool:
    return not scope.uses.get(id(var))
