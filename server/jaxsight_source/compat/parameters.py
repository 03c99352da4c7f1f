"""Parameters of equations, and the options of jitted functions. Applies to JAX 0.8 to 0.12.

Private API used:

* `_jit_info` of a jitted function (a `PjitInfo`), including its `compiler_options_kvs`;
* `_FlatCallback` (its `callback_func` and `in_tree`), and the closures that `debug_callback`
  creates, whose variables are named `callback`, `in_tree` and `static_args`;
* `NDIndexer` and `Slice` of `state.indexing`, and the other transformations of `state.types`, by
  the names of their attributes, as the `tree` of `get`, `swap` and `addupdate` holds them, and as
  `args_tree` and `tree` of the primitives of Pallas do;
* parameters of `shard_map` (`manual_axes`, from 0.9 on `newly_manual_axes`),
  `core.extend_axis_env_nd`, `core.NamedAxisEffect`, `mesh.use_abstract_mesh`, `config._check_vma`;
* `HiPrim.params` (of `call_hi_primitive`).
"""

from __future__ import annotations

import contextlib
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax._src import config, core
from jax._src import mesh as meshes
from jax._src.state import indexing
from jax.tree_util import PyTreeDef

from jaxsight_source.compat.equations import is_unspecified
from jaxsight_source.compat.jaxpr_types import Equation, Params


@dataclass(frozen=True, slots=True)
class Told:
    """The names of the static and the donated parameters of a jitted function."""

    static: frozenset[str] = frozenset()
    donated: frozenset[str] = frozenset()
    by_position: bool = False
    """Whether some are known by their positions."""


def told(function: Callable[..., object]) -> Told:
    """Return the static and donated parameters, as `inspect.signature` names them.

    There are none for a function that is not jitted.
    """
    info = getattr(function, "_jit_info", None)
    if info is None:
        return Told()
    # Bound methods forward attributes of their function, but hide its first parameter.
    hidden = ("self",) * isinstance(function, types.MethodType)
    parameters = (*hidden, *inspect.signature(function).parameters)

    def declared(prefix: str) -> tuple[frozenset[str], bool]:
        positions = tuple(getattr(info, f"{prefix}_argnums", None) or ())
        named = getattr(info, f"{prefix}_argnames", None) or ()
        places = [at for at in positions if -len(parameters) <= at < len(parameters)]
        return frozenset([*named, *(parameters[at] for at in places)]), bool(positions)

    (static, first), (donated, second) = declared("static"), declared("donate")
    return Told(static, donated, first or second)


def is_jitted(function: Callable[..., object]) -> bool:
    return hasattr(function, "_jit_info")


def compiler_options(function: Callable[..., object]) -> dict[str, Any]:
    """Return the compiler options of a jitted function, which its jaxpr does not contain."""
    info = getattr(function, "_jit_info", None)
    return dict(getattr(info, "compiler_options_kvs", ()) or ())


def traceable(function: Callable[..., object]) -> Callable[..., Any]:
    """Return the function without compiler options, which JAX only accepts at the top level."""
    if not is_jitted(function) or isinstance(function, types.MethodType):
        return function
    if not compiler_options(function):
        return function
    jitted: Any = function
    info = jitted._jit_info
    if not all(map(is_unspecified, (*info.in_shardings_leaves, *info.out_shardings_leaves))):
        return function  # JAX rejects it inside another function, with a clear error
    return jax.jit(
        jitted.__wrapped__,
        static_argnums=info.static_argnums,
        static_argnames=info.static_argnames,
        donate_argnums=info.donate_argnums,
        donate_argnames=info.donate_argnames,
        keep_unused=info.keep_unused,
    )


@dataclass(frozen=True, slots=True)
class HostCall:
    """A host function and its arguments; `fixed` maps positions to leaves that are not arrays."""

    function: object
    tree: PyTreeDef
    fixed: dict[int, object]

    def arguments(self, leaves: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return positional and keyword arguments, with `leaves` in place of the arrays."""
        remaining, count = iter(leaves), self.tree.num_leaves
        filled = [self.fixed[i] if i in self.fixed else next(remaining) for i in range(count)]
        args, kwargs = jax.tree.unflatten(self.tree, filled)
        return tuple(args), dict(kwargs)


def flat_callback(callback: Any) -> HostCall:
    """Return the function of a `pure_callback` or `io_callback`."""
    return HostCall(callback.callback_func, callback.in_tree, {})


def debug_callback(callback: Any) -> HostCall | None:
    """Return the function of a `debug_callback`.

    Return None if it was not created by `jax.debug.callback`.
    """
    code = getattr(callback, "__code__", None)
    if code is None or "callback" not in code.co_freevars:
        return None
    variables = {
        name: cell.cell_contents
        for name, cell in zip(code.co_freevars, callback.__closure__, strict=True)
    }
    return HostCall(
        variables["callback"], variables["in_tree"], dict(variables.get("static_args", {}))
    )


def print_call(params: Params) -> HostCall:
    """Return the arguments of a `debug_print` after its format."""
    return HostCall(print, params["in_tree"], dict(params["static_args"]))


def is_ordered(effect: object) -> bool:
    """Return whether a debug callback's effect is the ordered one."""
    return type(effect).__name__.startswith("Ordered")


# Newer versions define it elsewhere, but this module still has it.
_SLICE: Any = vars(indexing)["Slice"]


@dataclass(frozen=True, slots=True)
class AxisSlice:
    """A slice along one axis; `start` and `size` are numbers, or stand-ins for traced ones."""

    start: object
    size: object
    stride: int
    length: int
    """The axis's length."""

    @property
    def is_whole(self) -> bool:
        """Whether it covers the whole axis."""
        return (self.start, self.size, self.stride) == (0, self.length, 1)


@dataclass(frozen=True, slots=True)
class Indexed:
    """`ref.at[…]`."""

    indices: tuple[object, ...]
    """A `AxisSlice`, a number or a stand-in for each axis."""


@dataclass(frozen=True, slots=True)
class Viewed:
    """A method of a reference that returns another view, such as `ref.reshape((8, 128))`."""

    method: str
    argument: object


RefView = Indexed | Viewed

_METHODS = {
    "BitcastTransform": ("bitcast", "dtype"),
    "RefBitcaster": ("bitcast", "dtype"),
    "ReshapeTransform": ("reshape", "shape"),
    "RefReshaper": ("reshape", "shape"),
    "TransposeTransform": ("transpose", "permutation"),
    "RefTransposer": ("transpose", "permutation"),
}
"""The methods of references, and the attribute with the argument, by the transformation's class."""


def unflattened(tree: Any, leaves: Sequence[object]) -> Any:
    """Return the tree that a primitive's parameter describes, with `leaves`."""
    if isinstance(tree, jax.tree_util.PyTreeDef):
        return jax.tree.unflatten(tree, leaves)
    return tree.unflatten(list(leaves))  # a `FlatTree`, since 0.11


def parted(reference: Any) -> tuple[Any, Sequence[object]]:
    """Return a reference and its transformations, from what DMAs hold: a `TransformedRef`."""
    if isinstance(reference, tuple) and len(reference) == 2:
        return reference
    return getattr(reference, "ref", reference), getattr(reference, "transforms", ())


def views(transforms: Sequence[object]) -> list[RefView] | None:
    """Return what transformations of a reference do, in order; None if one is unknown."""
    found: list[RefView] = []
    for transform in transforms:
        if isinstance(transform, indexing.NDIndexer):
            found.append(Indexed(tuple(map(_index, transform.indices, transform.shape))))
            continue
        method, attribute = _METHODS.get(type(transform).__name__, ("", ""))
        if not method or not hasattr(transform, attribute):
            return None
        found.append(Viewed(method, getattr(transform, attribute)))
    return found


def _index(part: Any, length: int) -> object:
    return (
        AxisSlice(part.start, part.size, part.stride, length) if isinstance(part, _SLICE) else part
    )


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The parameters of a `shard_map`, independent of the JAX version."""

    mesh: Any
    body: Any
    manual: frozenset[str]
    """The axes that it makes manual."""
    in_specs: tuple[Any, ...]
    out_specs: tuple[object, ...]
    check_vma: bool

    @property
    def is_whole(self) -> bool:
        """Whether all axes of its mesh are manual, which is the default."""
        return self.manual >= frozenset(self.mesh.axis_names)


def shard_map(params: dict[str, Any]) -> ShardMap:
    manual = params.get("newly_manual_axes", params.get("manual_axes", frozenset()))
    return ShardMap(
        params["mesh"],
        params["jaxpr"],
        frozenset(manual),
        tuple(params["in_specs"]),
        tuple(params["out_specs"]),
        params["check_vma"],
    )


def has_mesh(aval: object) -> bool:
    """Return whether the type of a value has a mesh, even if no axis divides the value."""
    mesh: Any = getattr(getattr(aval, "sharding", None), "mesh", None)
    return mesh is not None and bool(mesh.axis_names)


def has_effects(equation: Equation) -> bool:
    """Return whether an equation has effects other than that it reads the name of an axis."""
    return any(not isinstance(effect, core.NamedAxisEffect) for effect in equation.effects)


@contextlib.contextmanager
def inside(mapped: ShardMap) -> Iterator[None]:
    """Enter the context of a `shard_map`'s body: axis names, manual mesh, variance check."""
    abstract_mesh = mapped.mesh.abstract_mesh
    manual = mapped.manual | set(getattr(mapped.mesh, "manual_axes", ()))
    inner = abstract_mesh.update_axis_types(
        dict.fromkeys(mapped.manual, jax.sharding.AxisType.Manual)
    )
    axes = [(name, size) for name, size in mapped.mesh.shape.items() if name in manual]
    with (
        core.extend_axis_env_nd(axes),
        meshes.use_abstract_mesh(inner),
        config._check_vma(mapped.check_vma),
    ):
        yield


def class_and_params(params: Params) -> tuple[str, Params]:
    """Return the class name and the parameters of a `call_hi_primitive`'s object."""
    primitive = params["_prim"]
    return type(primitive).__name__, {**vars(primitive), **dict(getattr(primitive, "params", {}))}


def params_of_object(value: object) -> Params | None:
    """Return the parameters of a high-level primitive's object, or None for anything else."""
    params = getattr(value, "params", None)
    return dict(params) if hasattr(value, "expand") and isinstance(params, dict) else None
