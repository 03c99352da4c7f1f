"""Leaves of arguments and results: which are traced, and with which abstract values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.compat import in_place_updates
from jaxsight.tracer.compat.traces import PlacedArgument
from jaxsight.tracer.states import nnx
from jaxsight_source.compat import avals
from jaxsight_source.jaxprs.contents import NOTHING, cell_contents


def is_array(leaf: object) -> bool:
    """Return whether a leaf of an argument is traced.

    That applies to arrays of JAX and NumPy, abstract arrays, tracers and references.
    """
    if isinstance(leaf, np.ndarray | np.generic):
        # JAX has no arrays of texts and times.
        return leaf.dtype != np.dtype(object) and leaf.dtype.kind not in "USMm"
    is_of_jax = isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | jax.core.Tracer)
    return is_of_jax or in_place_updates.is_ref(leaf)


def is_number(leaf: object) -> bool:
    """Return whether a leaf is a Python number, which `jax.jit` traces as a weakly typed scalar."""
    return type(leaf) in (bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class ArraysIn:
    """The arrays of a pytree: its leaves at `places`, which can be exchanged for others."""

    structure: jax.tree_util.PyTreeDef
    leaves: Sequence[Any]
    places: Sequence[int]

    @staticmethod
    def of(pytree: object) -> ArraysIn:
        leaves, structure = jax.tree_util.tree_flatten(pytree)
        return ArraysIn(structure, leaves, [at for at, leaf in enumerate(leaves) if is_array(leaf)])

    @property
    def arrays(self) -> list[Any]:
        return [self.leaves[at] for at in self.places]

    def filled(self, arrays: Iterable[object]) -> Any:
        """Return the pytree with other arrays."""
        leaves = list(self.leaves)
        for at, array in zip(self.places, arrays, strict=True):
            leaves[at] = array
        return jax.tree_util.tree_unflatten(self.structure, leaves)

    def alone(self, arrays: Iterable[object]) -> Any:
        """Return the pytree with other arrays, and `None` for all other leaves."""
        nothing = ArraysIn(self.structure, [None] * len(self.leaves), self.places)
        return nothing.filled(arrays)


def shapes(function: Callable[..., object], *arguments: object) -> Any:
    """Return the shapes of a result; arguments other than arrays are passed as they are."""
    call = ArraysIn.of(arguments)
    return jax.eval_shape(lambda arrays: function(*call.filled(arrays)), call.arrays)


def abstract(leaf: object) -> object:
    """Return the shape, dtype and weak type of an array or number, and its several devices.

    Raises:
        OverflowError: no dtype can represent the number.
    """
    return spread_like(jax.eval_shape(lambda value: value, leaf), leaf)


def shape_only(leaf: object) -> object:
    """Return an array's shape and dtype only, and its sharding over several devices."""
    if not is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct | jax.core.Tracer):
        return leaf
    aval = avals.of(leaf)
    # References have an aval of another class.
    if not isinstance(aval, jax.core.ShapedArray):
        return leaf
    struct = avals.struct(aval.shape, aval.dtype, avals.weak(aval))
    return spread_like(struct, leaf)


def spread_like(struct: Any, leaf: object) -> Any:
    """Return an abstract array over the devices of an array that is on several, in its memory."""
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and not isinstance(leaf, jax.core.Tracer):
        sharding = leaf.sharding
        if isinstance(sharding, jax.sharding.Sharding) and sharding.num_devices > 1:
            struct = struct.update(sharding=sharding)
    return shardings.on_host(struct) if shardings.is_on_host(leaf) else struct


def placements(value: object) -> list[PlacedArgument]:
    """Return the arrays of a value, if one of them is distributed over devices."""
    try:
        leaves, _ = nnx.flatten(value)
    except Exception:  # noqa: BLE001 - user code: tracing will raise it
        return []
    arrays = filter(is_array, leaves)
    arguments = [PlacedArgument(tuple(a.shape), a.dtype, shardings.sharding_of(a)) for a in arrays]
    return arguments if any(argument.sharding for argument in arguments) else []


def holds_no_tracer(leaf: object, depth: int = 0) -> bool:
    """Return whether a leaf that is not an array certainly holds no tracer, nor state.

    State (of a reference, an object of a class) must not be shared by two arguments or two traces.
    """
    if depth > 4:
        return False  # what is nested deeper is not looked through, so that a cycle ends
    match leaf:
        case None | bool() | int() | float() | complex() | str() | bytes() | type() | ModuleType():
            return True
        case jax.ShapeDtypeStruct() | np.dtype() | BuiltinFunctionType() | np.ufunc():
            return True
        case MethodType():
            parts = leaf.__func__, leaf.__self__
            return all(holds_no_tracer(part, depth + 1) for part in parts)
        case FunctionType():
            contents = (*map(cell_contents, leaf.__closure__ or ()), *(leaf.__defaults__ or ()))
            return all(value is NOTHING or holds_no_tracer(value, depth + 1) for value in contents)
        case _:
            wrapped = getattr(leaf, "__wrapped__", None)
            return callable(wrapped) and type(leaf).__module__.startswith(("jax", "jaxlib"))


def with_varying_numbers(value: Any, user_function: UserFunction) -> object:
    """Return an expression's value with its numbers abstract, like `jax.jit` traces them.

    A single number is unchanged, and so are lists and tuples of integers (a shape, axes, sizes of
    layers), the numbers of equinox modules, and all numbers for functions that a library's own
    `jit` traces.
    """
    are_sizes = type(value) in (tuple, list) and all(type(size) is int for size in value)
    is_jitted = user_function.jitted or user_function.wrapper is not None
    if is_jitted or is_number(value) or are_sizes:
        return value
    structure: jax.tree_util.PyTreeDef
    leaves, structure = jax.tree_util.tree_flatten(
        value, is_leaf=lambda part: nnx.is_node(part) or is_equinox(part)
    )
    try:
        return structure.unflatten([_varying_leaf(leaf) for leaf in leaves])
    except Exception:  # noqa: BLE001 - user code: a class may check its leaves
        return value


def _varying_leaf(leaf: object) -> object:
    try:
        return abstract(leaf) if is_number(leaf) else leaf
    except OverflowError:
        return leaf


def is_equinox(value: object) -> bool:
    """Return whether a value is a module of Equinox."""
    module = getattr(sys.modules.get("equinox"), "Module", None)
    return module is not None and isinstance(value, module)
