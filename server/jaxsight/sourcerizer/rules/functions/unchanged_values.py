"""Loops and branches that pass values through unchanged.

Derivatives leave such loops behind; JAX's public functions would remove these values, which is
another program, so they are written with `bind`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxsight.interpreters.compat import control_flow
from jaxsight.interpreters.compat.staging import Program, is_literal
from jaxsight.interpreters.same.liveness import live
from jaxsight.sourcerizer.proof.prover import Proved
from jaxsight.sourcerizer.text.exprs import Atom, Expr, Star, call, list_
from jaxsight.sourcerizer.text.statements import Function, Raw, Return, Statement
from jaxsight.sourcerizer.values.spelling import value
from jaxsight.sourcerizer.writing.scope import Scope

_SCAN = "scan_as_is"


def forwarded(program: Program) -> list[int | None]:
    """Return, for each result of a program, the position of the input that it is, or None."""
    positions = {id(var): index for index, var in enumerate(program.jaxpr.invars)}
    return [None if is_literal(atom) else positions.get(id(atom)) for atom in program.jaxpr.outvars]


def scan_hands_on(loop: control_flow.Scan) -> bool:
    """Return whether a scan carries an unchanged value, or returns slices of its inputs."""
    sources = forwarded(loop.body)
    unchanged = [index == loop.consts + i for i, index in enumerate(sources[: loop.carry])]
    slices = loop.consts + loop.carry
    return any(unchanged) or any(
        index is not None and index >= slices for index in sources[loop.carry :]
    )


def while_hands_on(cond: Program, conds: int, body: Program, consts: int) -> bool:
    """Return whether a loop carries an unchanged value that its condition does not read."""
    inside = cond.jaxpr
    used = {
        id(atom)
        for atoms in (inside.outvars, *(e.invars for e in live(inside.outvars, inside.eqns)))
        for atom in atoms
        if not is_literal(atom)
    }
    return any(
        index == consts + i and id(var) not in used
        for i, (index, var) in enumerate(zip(forwarded(body), inside.invars[conds:], strict=True))
    )


def branches_hand_on(branches: Sequence[Program]) -> bool:
    """Return whether all branches return the same operand as the same result."""
    return any(
        results[0] is not None and len(set(results)) == 1
        for results in zip(*map(forwarded, branches), strict=True)
    )


def scan_options(loop: control_flow.Scan) -> dict[str, Expr]:
    """Return the options of `lax.scan`, except its length."""
    options: dict[str, Expr] = {}
    if loop.reverse:
        options["reverse"] = Atom("True")
    if loop.unroll != 1:
        options["unroll"] = value(loop.unroll)
    if loop.split_transpose:
        options["_split_transpose"] = Atom("True")
    return options


def bound_scan(scope: Scope, equation: Any, loop: control_flow.Scan) -> Proved:
    carried = loop.consts + loop.carry
    # The body's inputs are slices of the arrays that the loop scans over.
    binders = [*loop.body.jaxpr.invars[:carried], *equation.invars[carried:]]
    operands = scope.operands(equation.invars, binders)
    body = scope.whole_function("body", loop.body, list_)
    options = {"length": value(loop.length)} | scan_options(loop)
    parts = (operands[: loop.consts], operands[loop.consts : carried], operands[carried:])
    helper = scope.writer.functions.helper(_SCAN, _scan_as_is)
    expr = call(helper, body, *map(list_, parts), **options)
    scope.writer.bound.append(equation.primitive.name)
    return Proved(expr, tuple(range(len(equation.outvars))))


def bound_while(scope: Scope, equation: Any, cond: Program, body: Program) -> Proved:
    params = equation.params
    conds = params["cond_nconsts"]
    consts = conds + params["body_nconsts"]
    state = scope.operands(equation.invars[consts:], body.jaxpr.invars[params["body_nconsts"] :])
    for_cond = scope.operands(equation.invars[:conds], cond.jaxpr.invars[:conds])
    for_body = scope.operands(equation.invars[conds:consts], body.jaxpr.invars[: consts - conds])
    written = [
        scope.whole_function(name, program, list_)
        for name, program in (("cond", cond), ("body", body))
    ]
    carried = scope.several(state, "state")
    jaxprs = [
        call(call("jax.make_jaxpr", function), *captured, *carried)
        for function, captured in zip(written, (for_cond, for_body), strict=True)
    ]
    scope.writer.bound.append("while")
    expr = call(
        "primitives.while_p.bind",
        *for_cond,
        *for_body,
        *carried,
        cond_jaxpr=jaxprs[0],
        body_jaxpr=jaxprs[1],
        cond_nconsts=value(conds),
        body_nconsts=value(consts - conds),
    )
    return Proved(expr, tuple(range(len(equation.outvars))))


def _scan_as_is() -> Function:
    """Return the module's function for such scans.

    It takes the parameters from a scan that passes nothing through.
    """
    lines = [
        "made = []",
        "",
        "def whole(consts, init, xs):",
        "    def step(carry, x):",
        "        made.append(jax.make_jaxpr(body)(*consts, *carry, *x))",
        "        carry, _ = lax.optimization_barrier((carry, consts))",
        "        return carry, [jnp.zeros(()) for _ in made[-1].out_avals[len(carry) :]]",
        "",
        "    return lax.scan(step, init, xs, **options)",
        "",
        "equations = jax.make_jaxpr(whole)(consts, init, xs).eqns",
        "scans = [each for each in equations if each.primitive is primitives.scan_p]",
        'params = scans[-1].params | {"jaxpr": made[-1]}',
    ]
    arguments = (Star(Atom(name)) for name in ("consts", "init", "xs", "*params"))
    body: list[Statement] = [Raw(lines), Return(call("primitives.scan_p.bind", *arguments))]
    function = Function(_SCAN, ("body", "consts", "init", "xs", "**options"), body)
    function.docstring = "`lax.scan` that also carries values which `body` does not change."
    return function
