"""Control flow: scan, while, cond and switch.

Derivatives leave loops and branches behind that pass values through unchanged. JAX's public
functions would remove these values, which is another program, so they are written with `bind`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import numpy as np

from jaxsight_source.compat import control_flow
from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.pallas import references
from jaxsight_source.compat.staging import Program, is_literal, opened
from jaxsight_source.equations.registry import ABSORBS, STRUCTURES
from jaxsight_source.jaxprs.same.liveness import live
from jaxsight_source.proof.prover import Proved
from jaxsight_source.readable import is_plain_choice
from jaxsight_source.text.exprs import ELLIPSIS, NONE, call, list_, tuple_
from jaxsight_source.text.statements import Raw, define, effect, return_
from jaxsight_source.values.public_names import at_hand
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.scope import WRITTEN, Scope
from jaxsight_source.writing.variables import nested_results, sequence, slices_of

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


def scan_options(loop: control_flow.Scan) -> dict[str, ast.expr]:
    """Return the options of `lax.scan`, except its length."""
    rows = (
        ("reverse", loop.reverse, False),
        ("unroll", loop.unroll, 1),
        ("_split_transpose", loop.split_transpose, False),
    )
    return {name: value(chosen) for name, chosen, default in rows if chosen != default}


def bound_scan(scope: Scope, equation: Equation, loop: control_flow.Scan) -> Proved:
    carried = loop.consts + loop.carry
    # The body's inputs are slices of the arrays that the loop scans over.
    binders = [*loop.body.jaxpr.invars[:carried], *equation.invars[carried:]]
    operands = scope.operands(equation.invars, binders)
    body = scope.function("body", loop.body, results=list_)
    options = {"length": value(loop.length)} | scan_options(loop)
    parts = (operands[: loop.consts], operands[loop.consts : carried], operands[carried:])
    helper = scope.writer.functions.helper(_SCAN, _scan_as_is)
    expr = call(helper, body, *map(list_, parts), **options)
    scope.writer.bound.append(equation.primitive.name)
    return Proved(expr, tuple(range(len(equation.outvars))))


def bound_while(scope: Scope, equation: Equation) -> Proved:
    cond, cond_captured, body, body_captured, init = control_flow.while_loop(
        equation, equation.invars
    )
    conds, consts = len(cond_captured), len(body_captured)
    state = scope.operands(init, body.jaxpr.invars[consts:])
    for_cond = scope.operands(cond_captured, cond.jaxpr.invars[:conds])
    for_body = scope.operands(body_captured, body.jaxpr.invars[:consts])
    test = scope.function("cond", cond, results=list_)
    step = scope.function("body", body, results=list_)
    carried = scope.several(state, "state")
    return scope.bound(
        equation,
        *for_cond,
        *for_body,
        *carried,
        cond_jaxpr=call(call("jax.make_jaxpr", test), *for_cond, *carried),
        body_jaxpr=call(call("jax.make_jaxpr", step), *for_body, *carried),
        cond_nconsts=value(conds),
        body_nconsts=value(consts),
    )


def _scan_as_is() -> ast.FunctionDef:
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
    arguments = (ast.Starred(ast.Name(name)) for name in ("consts", "init", "xs"))
    params = ast.keyword(None, ast.Name("params"))
    body: list[ast.stmt] = [Raw(lines), return_(call("primitives.scan_p.bind", *arguments, params))]
    docstring = "`lax.scan` that also carries values which `body` does not change."
    parameters = ("body", "consts", "init", "xs", "**options")
    return define(_SCAN, parameters, body, docstring=docstring)


def _optional(values: list[ast.expr]) -> ast.expr:
    return sequence(values) if values else NONE


def _numbers(start: int, count: int) -> int | tuple[int, ...] | None:
    """Return the positions of results that are one value, a tuple, or None."""
    if count == 0:
        return None
    return start if count == 1 else tuple(range(start, start + count))


@STRUCTURES("scan")
def scan(scope: Scope, equation: Equation) -> Proved:
    loop = control_flow.scan(equation.params)
    if scan_hands_on(loop):
        return bound_scan(scope, equation, loop)
    consts = loop.consts
    operands = scope.operands(equation.invars[consts:], loop.body.jaxpr.invars[consts:])
    init, xs = operands[: loop.carry], operands[loop.carry :]
    unnamed = ["x"] * consts + ["carry"] * loop.carry + slices_of(xs)

    def parameters(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> tuple[str, ...]:
        carry = inner.grouped(inputs[: loop.carry], bases[: loop.carry], "carry")
        return carry, inner.grouped(inputs[loop.carry :], bases[loop.carry :], "xs")

    def results(outputs: list[ast.expr]) -> ast.expr:
        return tuple_([_optional(outputs[: loop.carry]), _optional(outputs[loop.carry :])])

    body = scope.function("body", loop.body, equation.invars[:consts], parameters, results, unnamed)
    options = ({} if xs else {"length": value(loop.length)}) | scan_options(loop)
    arguments = [body, _optional(init)] + ([_optional(xs)] if xs else [])
    count = len(equation.outvars)
    nested = (_numbers(0, loop.carry), _numbers(loop.carry, count - loop.carry))
    return Proved(call("lax.scan", *arguments, **options), nested)


@STRUCTURES("while")
def while_(scope: Scope, equation: Equation) -> Proved:
    cond_program, for_cond, body_program, for_body, state = control_flow.while_loop(
        equation, equation.invars
    )
    consts = len(for_body)
    batched = bool(cond_program.jaxpr.outvars[0].aval.shape)  # it runs while any condition is true
    if batched or while_hands_on(cond_program, len(for_cond), body_program, consts):
        return bound_while(scope, equation)

    def carried(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> tuple[str, ...]:
        return (inner.grouped(inputs, bases, "carry"),)

    cond = scope.function("cond", cond_program, for_cond, carried, lambda results: results[0])
    body = scope.function("body", body_program, for_body, carried)
    init = scope.operands(state, body_program.jaxpr.invars[consts:])
    count = len(equation.outvars)
    return Proved(call("lax.while_loop", cond, body, sequence(init)), nested_results(count))


@ABSORBS("convert_element_type", "clamp", "platform_index")
def choice(equations: Sequence[Equation], position: int, uses: Callable[[object], int]) -> int:
    """Group a `cond` with the equation that computes its index.

    Before the branches, `lax.cond` converts its predicate, `lax.switch` clamps its index, and
    `lax.platform_dependent` requests a platform's index.
    """
    first = equations[position]
    if position + 1 >= len(equations):
        return 1
    following = equations[position + 1]
    (index,) = first.outvars
    if following.primitive.name != "cond" or uses(index) != 1 or following.invars[0] is not index:
        return 1
    branches = len(following.params["branches"])
    platforms = following.params.get("branches_platforms")
    if platforms is not None or first.primitive.name == "platform_index":
        return 2 if platforms == first.params.get("platforms") else 1
    if first.primitive.name == "clamp":
        low, _, high = (int(atom.val) if is_literal(atom) else None for atom in first.invars)
        return 2 if branches > 1 and (low, high) == (0, branches - 1) else 1
    converted = first.invars[0].aval
    is_predicate = converted.dtype == np.bool_ and converted.shape == ()
    return 2 if branches == 2 and is_predicate else 1


@STRUCTURES("cond")
def cond(scope: Scope, group: Equation | list[Equation]) -> Proved | None:
    """Write a choice; functions capture the references that branches read and write.

    JAX passes captured values before the operands, in the order in which branches use them. In
    another order, references are operands, too.
    """
    if not isinstance(group, list):
        return _known(scope, group) or bound(scope, group)
    chooser, equation = group
    if chooser.primitive.name == "platform_index":
        return _platforms(scope, equation)
    programs = [opened(branch) for branch in equation.params["branches"]]
    if not is_plain_choice(equation) or branches_hand_on(programs):
        return None
    switched = chooser.primitive.name == "clamp"
    index, operands = chooser.invars[1 if switched else 0], equation.invars[1:]
    captured = references([atom.aval for atom in operands])
    if _used(programs)[:captured] != list(range(captured)):
        captured = 0
    if captured and not (switched or equation.outvars or programs[0].jaxpr.eqns):
        inner = scope.inner()
        inner.capture(programs[1], operands)
        inner.program(programs[1])
        when = call(at_hand("jax.experimental.pallas", "when"), scope.operand(index))
        scope.body.append(define("_", (), inner.body or [effect(ELLIPSIS)], [when], runs=True))
        return WRITTEN
    names = ["if_false", "if_true"]
    if switched:
        names = [f"branch_{number}" for number in range(len(programs))]
    branches = [
        scope.function(*each, operands[:captured]) for each in zip(names, programs, strict=True)
    ]
    passed = scope.operands(operands[captured:], programs[0].jaxpr.invars[captured:])
    return _chosen(equation, scope.operand(index), branches, passed, switched=switched)


def _chosen(
    equation: Equation,
    index: ast.expr,
    branches: list[ast.expr],
    operands: Sequence[ast.expr],
    *,
    switched: bool = False,
) -> Proved:
    results = nested_results(len(equation.outvars))
    if switched:
        return Proved(call("lax.switch", index, list_(branches), *operands), results)
    return Proved(call("lax.cond", index, branches[1], branches[0], *operands), results)


def _used(programs: Sequence[Program]) -> list[int]:
    """Return the inputs that branches use, in the order in which JAX captures them.

    `lax.cond` traces the branch for True first, and `lax.switch` the first one
    (`jax/_src/lax/control_flow/conditionals.py`).
    """
    used: dict[int, None] = {}
    for program in reversed(programs) if len(programs) == 2 else programs:
        positions = {id(var): index for index, var in enumerate(program.jaxpr.invars)}
        read = [atom for each in program.jaxpr.eqns for atom in each.invars]
        used |= dict.fromkeys(
            positions[id(atom)] for atom in (*read, *program.jaxpr.outvars) if id(atom) in positions
        )
    return list(used)


def _known(scope: Scope, equation: Equation) -> Proved | None:
    """Write a choice whose index is a number: `lax.cond` converts a Python value to one."""
    index, *operands = equation.invars
    programs = [opened(branch) for branch in equation.params["branches"]]
    is_plain = is_plain_choice(equation) and not branches_hand_on(programs)
    if not is_literal(index) or len(programs) != 2 or not is_plain:
        return None
    branches = list(map(scope.function, ["if_false", "if_true"], programs))
    arguments = scope.operands(operands, programs[0].jaxpr.invars)
    return _chosen(equation, value(bool(index.val)), branches, arguments)


def _platforms(scope: Scope, equation: Equation) -> Proved:
    programs = [opened(branch) for branch in equation.params["branches"]]
    operands = scope.operands(equation.invars[1:], programs[0].jaxpr.invars)
    branches: dict[str, ast.expr] = {}
    for platforms, program in zip(equation.params["branches_platforms"], programs, strict=True):
        names = platforms or ("default",)
        function = scope.function(f"on_{names[0]}" if platforms else "on_others", program)
        branches |= dict.fromkeys(names, function)
    results = nested_results(len(equation.outvars))
    return Proved(call("lax.platform_dependent", *operands, **branches), results)


def bound(scope: Scope, equation: Equation) -> Proved:
    """Write a choice by an unclamped index with `bind`, as some transformations leave it."""
    programs = [opened(branch) for branch in equation.params["branches"]]
    index = scope.operand(equation.invars[0])
    operands = scope.operands(equation.invars[1:], programs[0].jaxpr.invars)
    written = [
        scope.function(f"branch_{number}", program) for number, program in enumerate(programs)
    ]
    arguments = scope.several(operands, "operands")
    branches = [call(call("jax.make_jaxpr", branch), *arguments) for branch in written]
    options = {
        key: value(arguments) for key, arguments in equation.params.items() if key != "branches"
    }
    return scope.bound(equation, index, *arguments, branches=tuple_(branches), **options)
