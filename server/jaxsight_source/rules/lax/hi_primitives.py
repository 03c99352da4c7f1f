"""High-level primitives (`call_hi_primitive`): functions of `jnp`, and `lax.custom_root`.

From JAX 0.12 on, JAX keeps them whole until it lowers them. For those that `jnp` jits,
`__wrapped__` is the function inside, as for any decorated function.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jaxsight_source.compat import hi_primitives
from jaxsight_source.compat.jaxpr_types import Atom as JaxprAtom
from jaxsight_source.compat.jaxpr_types import Equation, Jaxpr, Params, Var
from jaxsight_source.compat.staging import Program, is_jaxpr, opened
from jaxsight_source.equations.registry import LAX, STRUCTURES, View
from jaxsight_source.jaxprs.same.liveness import all_operands, live
from jaxsight_source.proof.prover import Proved
from jaxsight_source.text.exprs import TRUE, call, lambda_, public, subscript, tuple_
from jaxsight_source.text.statements import define, return_
from jaxsight_source.values import spelling
from jaxsight_source.values.scalars import text
from jaxsight_source.values.spelling import value
from jaxsight_source.writing.results import nested_results, sequence, with_parts
from jaxsight_source.writing.scope import Scope


@LAX("call_hi_primitive")
def high(view: View) -> Iterator[ast.expr]:
    """Yield the public function that creates the primitive, under `vmap` if it was."""
    name, fields = hi_primitives.class_and_params(view.params)
    match name:
        case "Nonzero":
            yield from _nonzero(view, fields)
        case "SearchSorted" if fields["dimension"] == fields["batch_dims"]:
            # Under `vmap` for the axes that both arrays share.
            named = {"side": "left", "method": "scan"}
            options: dict[str, ast.expr] = {
                option: text(fields[option]) for option in named if fields[option] != named[option]
            }
            function = "jnp.searchsorted.__wrapped__"
            yield _mapped(
                fields["batch_dims"],
                view.operands,
                lambda rows: call(function, *rows, **options),
                bare=None if options else public(function),
            )
        case "Ldexp" | "Frexp":
            yield call(f"jnp.{name.lower()}.__wrapped__", *view.operands)
        case "Einsum":
            yield call("jnp.einsum", text(str(fields["subscripts"])), *view.operands)
        case _:
            return


def _nonzero(view: View, fields: Params) -> Iterator[ast.expr]:
    """Yield `jnp.nonzero` over the last axes of an array, under `vmap` for the others."""
    array, *filled = view.operands
    rank, axes = view.inputs[0].ndim, tuple(fields["axes"])
    options: dict[str, ast.expr] = {"size": value(fields["size"])}
    if axes != tuple(range(rank - len(axes), rank)):
        return
    if filled and rank == len(axes):
        fills = (
            [filled[0], tuple_(filled)]
            if len({str(literal) for literal in view.literals[1:]}) == 1
            else [tuple_(filled)]
        )
        for fill in fills:
            yield call("jnp.nonzero", array, **options, fill_value=fill)
    elif not filled:
        yield _mapped(rank - len(axes), [array], lambda rows: call("jnp.nonzero", *rows, **options))


def _mapped(
    times: int,
    operands: Sequence[ast.expr],
    apply: Callable[[Sequence[ast.expr]], ast.expr],
    bare: ast.expr | None = None,
) -> ast.expr:
    """Return a call under nested `vmap`s over first axes.

    `bare` is the function itself, if it is called without options.
    """
    if not times:
        return apply(operands)
    rows = ("row",) if len(operands) == 1 else tuple(f"row{i + 1}" for i in range(len(operands)))
    function = bare if bare is not None else lambda_(rows, apply([ast.Name(row) for row in rows]))
    for _ in range(times):
        function = call("jax.vmap", function)
    return call(function, *operands)


_ROOTS = ("CustomRoot", "_RootLinearMap")
_NOT_WRITTEN = "its roots or other results are not arrays or tuples of arrays, or `vmap` created it"
_HIDDEN = "its `tangent_solve` applies the linear map inside a separate function"
_DERIVATIVE = "it is the derivative of a `lax.custom_root` function, which has no public name"
_OPEN = frozenset({"scan", "while", "custom_linear_solve"})
"""Primitives whose functions are written as closures, which can read enclosing names."""


@STRUCTURES("call_hi_primitive")
def root_finding(scope: Scope, equation: Equation) -> Proved | None:
    """Write `lax.custom_root`, and the linear map that it passes to `tangent_solve`."""
    if hi_primitives.class_and_params(equation.params)[0] not in _ROOTS:
        return None
    if (linear := hi_primitives.root_map(equation)) is not None:
        applied = _root_map(scope, equation, linear)
        return applied or scope.passed_in(equation, _DERIVATIVE, "derivative_of_root")
    root = hi_primitives.root(equation)
    if root is None:
        return scope.passed_in(equation, _NOT_WRITTEN, "custom_root")
    if _is_hidden(root.tangent.jaxpr):
        return scope.passed_in(equation, _HIDDEN, "custom_root")
    of_function, of_solve, of_tangent = root.captured
    count = len(root.guess)
    function = _of_roots(scope, "function", root.function, of_function, count)
    solve = _of_roots(scope, "solve", root.solve, of_solve, count, "f", root)
    tangent = _without_roots(root.tangent, len(of_tangent), count)
    tangent_solve = _of_roots(scope, "tangent_solve", tangent, of_tangent, count, "linear", root)
    guess = sequence([scope.operand(atom) for atom in root.guess])
    options: dict[str, ast.expr] = {"has_aux": TRUE} if root.has_aux else {}
    expr = call("lax.custom_root", function, guess, solve, tangent_solve, **options)
    return Proved(expr, root.results)


def _is_hidden(jaxpr: Jaxpr, closed: bool = False) -> bool:
    """Return whether the linear map is applied where its name cannot be read."""
    for equation in jaxpr.eqns:
        if closed and _linear_in(equation) is not None:
            return True
        is_closed = closed or equation.primitive.name not in _OPEN
        inside = filter(is_jaxpr, jax.tree.leaves(dict(equation.params), is_leaf=is_jaxpr))
        if any(_is_hidden(opened(inner).jaxpr, is_closed) for inner in inside):
            return True
    return False


def _of_roots(
    scope: Scope,
    name: str,
    program: Program,
    captured: Sequence[JaxprAtom],
    count: int,
    function_name: str = "",
    root: hi_primitives.Root | None = None,
) -> ast.expr:
    """Write a function of `count` values, preceded by a function parameter if `root` is set.

    `function_name` is the name of that parameter.
    """

    def parameters(inner: Scope, inputs: Sequence[Var], bases: list[str]) -> tuple[str, ...]:
        first: tuple[str, ...] = ()
        if root is not None:
            first = (inner.names.fresh(function_name),)
            inner.write(root.function.jaxpr, ast.Name(*first))
        return *first, inner.grouped(inputs, bases, "xs")

    def results(values: list[ast.expr]) -> ast.expr:
        nested = root.results if root is not None and name == "solve" else nested_results(count)
        return _nested(nested, values)

    return scope.function(name, program, captured, parameters, results)


def _nested(results: Any, values: Sequence[ast.expr]) -> ast.expr:
    if isinstance(results, tuple):
        return tuple_([_nested(part, values) for part in results])
    single: ast.expr = values[results]
    return single


def _without_roots(program: Program, captured: int, count: int) -> Program:
    """Return the program of `tangent_solve`, which reads the root in its linear map only."""

    def read_by(equation: Equation) -> Sequence[Any]:
        linear = _linear_in(equation)
        return all_operands(equation) if linear is None else linear

    jaxpr = program.jaxpr
    needed = live(jaxpr.outvars, jaxpr.eqns, read_by)
    inputs = itertools.chain(jaxpr.invars[:captured], jaxpr.invars[captured + count :])
    return with_parts(program, invars=list(inputs), eqns=needed, debug_info=None)


def _linear_in(equation: Equation) -> Sequence[object] | None:
    """Return the operands of a root's linear map, or None for other equations."""
    if equation.primitive.name != "call_hi_primitive":
        return None
    linear = hi_primitives.root_map(equation)
    return None if linear is None else equation.invars[-linear.count :]


def _root_map(scope: Scope, equation: Equation, linear: hi_primitives.RootMap) -> Proved | None:
    try:
        function = scope.read(linear.function.jaxpr)
    except KeyError:  # the map of a derivative, which no public function creates
        return None
    atoms = equation.invars[-linear.count :]
    roots = linear.function.jaxpr.invars[-linear.count :]
    batched = len(atoms[0].aval.shape) - len(roots[0].aval.shape)
    operand = sequence([scope.operand(atom) for atom in atoms])
    if linear.transposed:
        example = sequence([spelling.struct(var.aval) for var in roots])
        transposed = call(call("jax.linear_transpose", function, example), ast.Name("x"))
        name = scope.names.fresh("transposed")
        scope.body.append(define(name, ("x",), [return_(subscript(transposed, ast.Constant(0)))]))
        function = ast.Name(name)
    applied = _mapped(batched, [operand], lambda rows: call(function, *rows), bare=function)
    return Proved(applied, nested_results(len(equation.outvars)))
