"""`inverse`: from a function to the function that returns its arguments.

Each call of the inverse traces the function, on abstract values like its arguments; under `jax.jit`
that happens once. The function never runs, and its side effects (printing, callbacks) are not
repeated.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import without_refs
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program
from jaxsight_source.inversion import network as networks
from jaxsight_source.inversion.errors import NotInvertible
from jaxsight_source.inversion.rules import systems
from jaxsight_source.jaxprs.base import import_modules, room_for_nesting

import_modules("jaxsight_source.inversion.rules")


def inverse(function: Callable[..., object], *like: object) -> Callable[..., Any]:
    """Return the inverse of a function: `inverse(f)(f(x))` is `x`.

    >>> f = lambda x: jnp.exp(jnp.tanh(x))
    >>> print(f"{inverse(f)(f(0.5)):.3f}")
    0.500

    The inverse takes the results of `function`: one value or, for a tuple, several. It returns the
    argument, or a tuple of all positional arguments if there are several. Keyword arguments are
    known values, which are passed on to `function` (`inverse(f)(y, scale=2.0)`). The inverse can be
    traced, so `jax.jit`, `jax.vmap` and `jax.grad` apply to it.

    Args:
        function: built from invertible operations, on values that its results determine.
        like: examples of its positional arguments: arrays, `jax.ShapeDtypeStruct`s or pytrees of
            them. Needed if their shapes differ from those of the results; otherwise inferred.
            Leaves that are neither arrays nor numbers are passed unchanged.

    Raises:
        NotInvertible: when the inverse is called; names the operation without an inverse, and its
            line.
    """

    if not callable(function):
        raise TypeError(f"expected a function to invert, got {type(function).__name__}")

    def inverted(*outputs: object, **keywords: object) -> Any:
        called = functools.partial(function, **keywords) if keywords else function
        name = getattr(function, "__name__", type(function).__name__)
        invalid = [leaf for leaf in jax.tree.leaves(outputs) if not _is_array(leaf)]
        if invalid or not outputs:
            got = type(invalid[0]).__name__ if invalid else "nothing"
            raise TypeError(f"the inverse of {name} expects results of {name}, got {got}")
        with room_for_nesting():
            traced, results = _traced(called, name, like, outputs)
            network = _solved(name, traced)
        known_values: dict[networks.Node, jax.Array] = {}
        for node, value in zip(network.outputs, results, strict=True):
            known_values.setdefault(node, value)
        values = iter(network.plan(network.inputs)(known_values))
        leaves = [
            next(values) if is_array else leaf
            for leaf, is_array in zip(traced.leaves, traced.are_arrays, strict=True)
        ]
        arguments = jax.tree.unflatten(traced.structure, leaves)
        return arguments[0] if len(arguments) == 1 else arguments

    function_name = getattr(function, "__name__", "function")
    inverted.__name__ = f"{function_name}_inverse" if function_name.isidentifier() else "inverse"
    inverted.__qualname__ = inverted.__name__
    inverted.__doc__ = f"Return the arguments of `{function_name}` for its results."
    return inverted


@dataclass(frozen=True, slots=True)
class _Traced:
    """A function's program, with the leaves of the arguments on which it was traced.

    `are_arrays` marks the leaves to compute; the others are constants. `outputs` is the tree of
    the results.
    """

    program: Program
    structure: jax.tree_util.PyTreeDef
    leaves: Sequence[object]
    are_arrays: Sequence[bool]
    names: Sequence[str]
    outputs: jax.tree_util.PyTreeDef


def _traced(
    function: Callable[..., object], name: str, like: Sequence[object], results: Sequence[object]
) -> tuple[_Traced, list[jax.Array]]:
    """Trace the function on arguments for which its results have the types of `results`.

    Return it with `results` as arrays.
    """
    if like:
        traced = _trace(function, like)
        return traced, _matched(name, traced, like, results, weak=True)
    example = _arguments(function, results)
    if example is None:
        raise TypeError(
            f"{name} does not take as many arguments as it returns results{_advice(name)}"
        )
    traced = _trace(function, example)
    return traced, _matched(name, traced, example, results, weak=False)


def _arguments(
    function: Callable[..., object], results: Sequence[object]
) -> Sequence[object] | None:
    """Return the results as arguments, if the function takes as many, or None."""
    candidates: list[Sequence[object]] = [results, (tuple(results),)]
    match results:
        case [tuple() | list() as only]:
            candidates.insert(1, tuple(only))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return results
    for candidate in candidates:
        try:
            signature.bind(*candidate)
        except TypeError:
            continue
        return candidate
    return None


def _trace(function: Callable[..., object], example: Sequence[object]) -> _Traced:
    flat, structure = jax.tree_util.tree_flatten_with_path(tuple(example))
    leaves = [leaf for _, leaf in flat]
    are_arrays = [_is_array(leaf) for leaf in leaves]
    trees: list[jax.tree_util.PyTreeDef] = []

    def arrays_alone(*arrays: object) -> list[object]:
        remaining = iter(arrays)
        arguments = [
            next(remaining) if is_array else leaf
            for leaf, is_array in zip(leaves, are_arrays, strict=True)
        ]
        results, tree = jax.tree.flatten(function(*jax.tree.unflatten(structure, arguments)))
        trees.append(tree)
        return results

    closed = jax.make_jaxpr(arrays_alone)(*itertools.compress(leaves, are_arrays))
    names = [
        f"argument {path[0].idx}{jax.tree_util.keystr(path[1:])}"
        for path, _ in itertools.compress(flat, are_arrays)
    ]
    return _Traced(without_refs(closed), structure, leaves, are_arrays, names, trees[-1])


def _is_array(leaf: object) -> bool:
    return isinstance(
        leaf,
        jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic | bool | int | float | complex,
    )


def _matched(
    name: str, traced: _Traced, example: Sequence[object], results: Sequence[object], *, weak: bool
) -> list[jax.Array]:
    """Return the leaves of `results` as arrays with the types of the function's results.

    Python numbers take the results' dtypes if `weak`. Raise `TypeError` if the types differ.
    """
    expected = [var.aval for var in traced.program.jaxpr.outvars]
    only = results[0] if len(results) == 1 else tuple(results)
    for candidate in (only, tuple(results)):
        leaves, structure = jax.tree.flatten(candidate)
        if structure == traced.outputs and all(map(_is_array, leaves)):
            break
    else:
        raise TypeError(
            f"{name} returns {_shown(jax.tree.unflatten(traced.outputs, expected))}, "
            f"but its inverse got {_shown(only)}{_advice(name)}"
        )
    arrays = []
    for leaf, aval in zip(leaves, expected, strict=True):
        array = jnp.asarray(leaf)
        if weak and isinstance(leaf, int | float | complex) and not array.shape:
            array = jnp.asarray(leaf, aval.dtype)
        arrays.append(array)
    if [(array.shape, array.dtype) for array in arrays] != [
        (aval.shape, aval.dtype) for aval in expected
    ]:
        arguments = ", ".join(_shown(argument) for argument in example)
        raise TypeError(
            f"{name} returns {_shown(jax.tree.unflatten(traced.outputs, expected))} for "
            f"{arguments}, but its inverse got "
            f"{_shown(jax.tree.unflatten(traced.outputs, arrays))}{_advice(name)}"
        )
    return arrays


def _advice(name: str) -> str:
    return f"; pass example arguments: inverse({name}, jax.ShapeDtypeStruct(shape, dtype))"


def _shown(tree: object) -> str:
    """Return the text of a pytree with its arrays as `f32[3]`."""

    def text(leaf: object) -> avals.Unquoted:
        return avals.Unquoted(avals.text(leaf if avals.is_aval(leaf) else avals.of(leaf)))

    return str(jax.tree.map(text, tree))


def _solved(name: str, traced: _Traced) -> networks.Network:
    """Return the network of all values that the results determine.

    Raise `NotInvertible` if these do not include all arguments.
    """
    outputs = range(len(traced.program.jaxpr.outvars))
    network = networks.Network(
        traced.program, (), outputs, networks.Solver(rule_of, systems.solve), {}
    )
    for node, called in zip(network.inputs, traced.names, strict=True):
        if not network.knows(node):
            for placed, why in network.blocked():
                raise NotInvertible(name, why.reason, why.culprit or placed)
            raise NotInvertible(name, f"its results do not depend on {called}")
    return network


Inverse: TypeAlias = Callable[..., jax.Array]

inverse_registry: dict[Primitive, Inverse | Sequence[Inverse | None]] = {}
"""Inverses by primitive.

>>> inverse_registry[jax.lax.exp_p] = jax.numpy.log

A primitive with one operand has a function from its results to the operand. One with several has a
sequence with a function for each, which computes it from the results and the other operands in
order, or `None` if they do not determine it:

>>> inverse_registry[jax.lax.sub_p] = (lambda y, b: y + b, lambda y, a: a - y)
>>> inverse_registry.clear()
"""


def rule_of(equation: Equation) -> networks.Rule | None:
    """Return the rule for an equation: the registered one, or that of `jaxsight.inverse`."""
    primitive = equation.primitive
    registered = inverse_registry.get(cast(Primitive, primitive))
    if registered is None:
        return networks.inverses.of(primitive.name)
    functions = (registered,) if callable(registered) else tuple(registered)
    operands = len(equation.invars)
    if len(functions) != operands or not all(f is None or callable(f) for f in functions):
        raise TypeError(
            f"inverse_registry needs {operands} function{'s' if operands > 1 else ''} for "
            f"{primitive.name}, one for each operand, got {registered!r}"
        )
    return lambda placed, network: _solution(functions, placed, network)


def _solution(
    functions: Sequence[Inverse | None], placed: networks.Placed, network: networks.Network
) -> networks.Solution | networks.Blocked:
    unknown = [index for index, node in enumerate(placed.inputs) if not network.knows(node)]
    if len(unknown) > 1:
        return networks.Blocked(f"has {len(unknown)} unknown operands")
    if not network.knows(*placed.outputs):
        return networks.Blocked("has unknown results")
    (index,) = unknown
    function = functions[index]
    if function is None:
        return networks.Blocked(f"has no registered inverse for operand {index}")
    others = tuple(node for at, node in enumerate(placed.inputs) if at != index)
    argument = placed.inputs[index]

    def compute(*values: object) -> list[jax.Array]:
        # A constant of the program may be a number, or an array without operators (JAX 0.8).
        return [function(*(v if isinstance(v, jax.Array) else jnp.asarray(v) for v in values))]

    return networks.Solution((*placed.outputs, *others), (argument,), compute)
