"""Reads the objects of high-level primitives (`call_hi_primitive`). Applies to JAX 0.12.

Private API used: `HiPrim.params`, the attributes of `CustomRoot` and `_RootLinearMap`, closures of
`Traced.closure_convert`.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import jax

from jaxsight_source.compat.jaxpr_types import Atom, Equation, Params
from jaxsight_source.compat.staging import Program, is_jaxpr, opened


def class_and_params(params: Params) -> tuple[str, Params]:
    """Return the class name and the parameters of a `call_hi_primitive`'s object."""
    primitive = params["_prim"]
    return type(primitive).__name__, {**vars(primitive), **dict(getattr(primitive, "params", {}))}


@dataclass(frozen=True, slots=True)
class Root:
    """A `lax.custom_root` (from JAX 0.12 on).

    The inputs of each program are the values that it captures, then its arguments: those of
    `tangent` are the roots and the right-hand side. `captured` holds the operands of the equation
    that each program captures, `guess` the operands that hold the initial guess, and `results` the
    tree of the results.
    """

    function: Program
    solve: Program
    tangent: Program
    captured: tuple[Sequence[Atom], Sequence[Atom], Sequence[Atom]]
    guess: Sequence[Atom]
    results: object
    has_aux: bool


def root(equation: Equation) -> Root | None:
    """Read a `CustomRoot`.

    Returns:
        None for other equations, for a `vmap` of a root, and if the roots, or the solver's other
        results, are neither a single array nor a tuple of arrays.
    """
    name, params = class_and_params(equation.params)
    functions = [params.get(key) for key in ("f", "solve", "tangent_solve")]
    if name != "CustomRoot" or not all(map(_is_converted, functions)):
        return None
    solve, guess, function, tangent = params["in_avals"]
    outputs: jax.tree_util.PyTreeDef = jax.tree.structure(params["out_aval"])
    results = jax.tree.unflatten(outputs, range(outputs.num_leaves))
    if not (_of_tuples(guess) and _of_tuples(results)):
        return None
    operands = iter(equation.invars)
    parts = [
        list(itertools.islice(operands, len(jax.tree.leaves(avals))))
        for avals in (solve, guess, function, tangent)
    ]
    captured = parts[2], parts[0], parts[3]
    equations, solver, solver_of_tangents = map(_converted, functions)
    has_aux = params["has_aux"]
    return Root(equations, solver, solver_of_tangents, captured, parts[1], results, has_aux)


@dataclass(frozen=True, slots=True)
class RootMap:
    """The derivative of a root's function, which `lax.custom_root` passes to `tangent_solve`.

    `function` is that function; the map is linear in the last `count` operands.
    """

    function: Program
    count: int
    transposed: bool


def root_map(equation: Equation) -> RootMap | None:
    """Read a `_RootLinearMap`; return None for other equations."""
    name, params = class_and_params(equation.params)
    if name != "_RootLinearMap":
        return None
    function = next(_converted_within(params["f"]), None)
    if function is None:
        return None
    count = len(jax.tree.leaves(params["in_avals"][2]))
    return RootMap(function, count, params["transposed"])


def _converted_within(function: types.FunctionType) -> Iterator[Program]:
    """Yield the programs of a closure-converted function, under any number of `vmap`s."""
    if _is_converted(function):
        yield _converted(function)
        return
    for cell in function.__closure__ or ():
        if isinstance(cell.cell_contents, types.FunctionType):
            yield from _converted_within(cell.cell_contents)


def _of_tuples(tree: object) -> bool:
    if not isinstance(tree, tuple):
        return tree is not None and jax.tree.leaves(tree) == [tree]
    return type(tree) is tuple and all(map(_of_tuples, tree))


def _is_converted(function: object) -> bool:
    """Return whether a function is a result of `Traced.closure_convert`."""
    name = str(getattr(function, "__qualname__", ""))
    return name.startswith("_closure_converted_fun.") and len(_captured_jaxprs(function)) == 1


def _captured_jaxprs(function: object) -> list[object]:
    cells: Iterable[types.CellType] = getattr(function, "__closure__", None) or ()
    return [cell.cell_contents for cell in cells if is_jaxpr(cell.cell_contents)]


def _converted(function: object) -> Program:
    """Return the program of a closure-converted function."""
    (jaxpr,) = _captured_jaxprs(function)
    return opened(jaxpr)


def params_of_object(value: object) -> Params | None:
    """Return the parameters of a high-level primitive's object, or None for anything else."""
    params = getattr(value, "params", None)
    return dict(params) if hasattr(value, "expand") and isinstance(params, dict) else None
