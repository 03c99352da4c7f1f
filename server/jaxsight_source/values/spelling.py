"""Values as expressions: parameters of equations, of any type.

All functions raise `Unwritable` rather than guess. Everything is spelled through public names.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import DType
from jaxsight_source.errors import Unwritable
from jaxsight_source.text import exprs
from jaxsight_source.text.exprs import call, list_, parsed, public, tuple_, unary
from jaxsight_source.text.layout import flat
from jaxsight_source.values.public_names import imported, path_of, primitive, public_path


def value(subject: object) -> ast.expr:
    """Return an expression for any parameter of an equation; raise `Unwritable` if it has none."""
    match subject:
        case None:
            return exprs.NONE
        case np.bool_() | np.number():
            return value(subject.item()) if subject.dtype.isbuiltin == 1 else typed(subject)
        case enum.Enum() if exprs.is_identifier(subject.name or ""):
            return ast.Attribute(path_of(type(subject), subject), subject.name)
        case enum.Enum():
            raise Unwritable(subject)
        case bool() | int() | float() | complex():
            return number(subject)
        case str() | bytes():
            return ast.Constant(subject)
        case np.dtype() | jax.dtypes.prng_key():
            return dtype(subject)
        case _:
            expr = _collection(subject)
            return expr if expr is not None else _of_jax(subject)


def _collection(collection: object) -> ast.expr | None:
    """Return an expression for a collection of Python's or NumPy's, or None for other values."""
    match collection:
        case tuple() if hasattr(collection, "_fields"):
            return _fields(collection, zip(collection._fields, collection, strict=True))
        case tuple() if type(collection) is tuple:
            return exprs.tuple_(value(part) for part in collection)
        case list():
            return list_(value(part) for part in collection)
        case dict():
            return exprs.dict_((value(key), value(part)) for key, part in collection.items())
        case range():
            step = () if collection.step == 1 else (value(collection.step),)
            return call("range", value(collection.start), value(collection.stop), *step)
        case slice():
            return call(
                "slice", value(collection.start), value(collection.stop), value(collection.step)
            )
        case frozenset():
            return call("frozenset", list_(value(part) for part in sorted(collection, key=repr)))
        case set() if collection:
            return ast.Set([value(part) for part in sorted(collection, key=repr)])
        case np.ndarray() if collection.size > 64:  # parameters have small ones
            raise Unwritable(collection, "it has more than 64 elements")
        case np.ndarray(dtype=own):
            name = "bool_" if own == np.bool_ else own.name
            numpy_dtype = public(f"np.{name}") if own.isbuiltin == 1 else dtype(own)
            return call("np.array", _nested(collection.tolist()), dtype=numpy_dtype)
        case _:
            return None


def _of_jax(subject: object) -> ast.expr:
    """Return an expression for an object of JAX's, a function, or an object of another package."""
    match subject:
        case jax.extend.core.Primitive():
            return primitive(subject)
        case jax.tree_util.PyTreeDef():
            try:
                zeros = jax.tree.unflatten(subject, [0] * subject.num_leaves)
            except Exception as error:  # another package's container, which requires other leaves
                raise Unwritable(subject) from error
            return call("jax.tree.structure", value(zeros))
        case jax.Device():
            return parsed(
                f'jax.devices("{subject.platform}")[{jax.devices(subject.platform).index(subject)}]'
            )
        case _ if subject is jax.sharding.PartitionSpec.UNCONSTRAINED:
            return public("jax.sharding.PartitionSpec.UNCONSTRAINED")
        case jax.sharding.PartitionSpec():
            return call(path_of(type(subject), subject), *map(value, subject))
        case jax.sharding.NamedSharding() | jax.sharding.SingleDeviceSharding():
            return _sharding(subject)
        case jax.sharding.AbstractMesh() if getattr(subject, "abstract_device", None) is not None:
            return abstract_mesh(subject)
        case jax.sharding.AbstractMesh():
            types = [] if not subject.axis_names else [value(tuple(subject.axis_types))]
            sizes, names = value(subject.axis_sizes), value(subject.axis_names)
            return call("jax.sharding.AbstractMesh", sizes, names, *types)
        case jax.sharding.Mesh():
            if not subject.axis_names:
                raise Unwritable(subject, "it has no devices")
            return exprs.once("_MESH", _usual_mesh(subject) or _mesh_of_positions(subject))
        case functools.partial():
            raise Unwritable(subject)
        case _ if isinstance(subject, type) or (
            callable(subject) and not dataclasses.is_dataclass(subject)
        ):
            return function(subject)
        case _:
            return _object(subject)


def _sharding(sharding: Any) -> ast.expr:
    usual = sharding.memory_kind in (None, "device")
    memory_kind = {} if usual else {"memory_kind": ast.Constant(sharding.memory_kind)}
    if isinstance(sharding, jax.sharding.SingleDeviceSharding):
        (device,) = sharding.device_set
        return call("jax.sharding.SingleDeviceSharding", value(device), **memory_kind)
    around = _is_around(sharding.mesh)
    mesh = call("jax.sharding.get_abstract_mesh") if around else value(sharding.mesh)
    return call("jax.sharding.NamedSharding", mesh, value(sharding.spec), **memory_kind)


def placements(sharding: jax.sharding.NamedSharding | None) -> Iterator[ast.expr]:
    """Yield spellings of the `out_sharding` of a function: its spec under a set mesh, or whole."""
    if sharding is None:
        return
    if not jax.sharding.get_abstract_mesh().empty:
        yield value(sharding.spec)
    if _is_around(sharding.mesh):
        yield value(sharding)
        return
    mesh = sharding.mesh
    concrete = of_first_devices(mesh) if isinstance(mesh, jax.sharding.AbstractMesh) else mesh
    yield call("jax.sharding.NamedSharding", value(concrete or mesh), value(sharding.spec))


def layout(array_layout: Any) -> ast.expr:
    """Return an array's memory layout as a `jax.experimental.layout.Layout`."""
    path = imported("jax.experimental.layout", "Layout")
    if not hasattr(array_layout, "major_to_minor"):
        return ast.Attribute(path, "AUTO")
    bits = getattr(array_layout, "sub_byte_element_size_in_bits", None) or getattr(
        array_layout, "_sub_byte_element_size_in_bits", 0
    )
    options = {} if array_layout.tiling is None else {"tiling": value(array_layout.tiling)}
    if bits:
        options["sub_byte_element_size_in_bits"] = value(bits)
    return call(path, value(tuple(array_layout.major_to_minor)), **options)


def _is_around(mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh) -> bool:
    """Return whether a mesh is the one of the surrounding program."""
    return bool(mesh.axis_names) and mesh == jax.sharding.get_abstract_mesh()


def abstract_mesh(mesh: jax.sharding.AbstractMesh) -> ast.expr:
    """Return a mesh without devices, or that of the machine's first devices of its kind."""
    if getattr(mesh, "abstract_device", None) is None:
        return value(mesh)
    concrete = of_first_devices(mesh)
    if concrete is not None and concrete.abstract_mesh == mesh:
        return ast.Attribute(value(concrete), "abstract_mesh")
    raise Unwritable(mesh, "its devices are not present")


def of_first_devices(mesh: jax.sharding.AbstractMesh) -> jax.sharding.Mesh | None:
    """Return an abstract mesh with the machine's first devices; None if there are too few."""
    devices = jax.devices()[: math.prod(mesh.axis_sizes)]
    if len(devices) < math.prod(mesh.axis_sizes) or not mesh.axis_names:
        return None
    array = np.array(devices).reshape(mesh.axis_sizes)
    return jax.sharding.Mesh(array, mesh.axis_names, axis_types=mesh.axis_types)


def _usual_mesh(mesh: jax.sharding.Mesh) -> ast.Call | None:
    """Return a call of `jax.make_mesh`, or None if it has other devices, or in another order."""
    shape, names, types = mesh.devices.shape, mesh.axis_names, tuple(mesh.axis_types)
    try:
        usual = jax.make_mesh(shape, names, axis_types=types)
    except ValueError:
        return None
    if usual != mesh:
        return None
    return call("jax.make_mesh", value(shape), value(names), axis_types=value(types))


def _mesh_of_positions(mesh: jax.sharding.Mesh) -> ast.Call:
    """Return a mesh of devices by their positions."""
    ids = [jax.devices().index(device) for device in mesh.devices.flat]
    if ids == list(range(len(ids))):
        devices: ast.expr = parsed(f"jax.devices()[:{len(ids)}]")
    else:
        devices = list_(parsed(f"jax.devices()[{index}]") for index in ids)
    placed = call(ast.Attribute(call("np.array", devices), "reshape"), value(mesh.devices.shape))
    types = value(tuple(mesh.axis_types))
    return call("jax.sharding.Mesh", placed, value(mesh.axis_names), axis_types=types)


def _nested(parts: object) -> ast.expr:
    return list_(_nested(part) for part in parts) if isinstance(parts, list) else number(parts)


def function(subject: Callable[..., object] | type) -> ast.expr:
    """Return the path from which a function or class is imported."""
    if isinstance(subject, type) and issubclass(subject, np.generic):
        return dtype(subject)
    return path_of(subject, subject)


def _fields(subject: object, fields: Iterable[tuple[str, object]]) -> ast.expr:
    path = path_of(type(subject), subject)
    return call(path, *(ast.keyword(name, value(part)) for name, part in fields))


def _object(subject: object) -> ast.expr:
    name = getattr(subject, "name", None)
    if isinstance(name, str) and getattr(type(subject), name, None) == subject:
        path = public_path(type(subject))  # an enum defined in C++
        if path is not None:
            return ast.Attribute(path, name)
    if dataclasses.is_dataclass(subject) and not isinstance(subject, type):
        fields = [
            (field.name, getattr(subject, field.name))
            for field in dataclasses.fields(subject)
            if field.init
        ]
        return _fields(subject, fields)
    if isinstance(subject, jax.lax.Tolerance):
        return _fields(subject, vars(subject).items())
    if avals.is_subtype(getattr(subject, "type", None), jax.dtypes.extended):
        return dtype(subject)
    raise Unwritable(subject)


def struct(aval: Any) -> ast.expr:
    """Return `jax.ShapeDtypeStruct((3,), jnp.float32)` for an array's abstract value."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise Unwritable(aval)
    weak = {"weak_type": exprs.TRUE} if getattr(aval, "weak_type", False) else {}
    return call("jax.ShapeDtypeStruct", value(tuple(aval.shape)), dtype(aval.dtype), **weak)


def dtype(value: Any) -> ast.expr:
    """Return `jnp.float32`; for a dtype of PRNG keys, that of a key."""
    if avals.is_subtype(value, jax.dtypes.prng_key):
        impl = avals.key_impl(value)
        return parsed(f'jax.random.key(0, impl="{impl}").dtype')
    converted = np.dtype(value)
    if converted == jax.dtypes.float0:
        return public("jax.dtypes.float0")
    name = "bool_" if converted.name == "bool" else converted.name
    if not hasattr(jnp, name):
        raise Unwritable(value)
    return public(f"jnp.{name}")


def kind(dtype: DType) -> str:
    """Return `f`, `i`, `u`, `c` or `b` for a dtype, also for small ones; empty for others."""
    for letter, family in (
        ("b", np.bool_), ("i", np.signedinteger), ("u", np.unsignedinteger),
        ("f", np.floating), ("c", np.complexfloating),
    ):  # fmt: skip
        if avals.is_subtype(dtype, family):
            return letter
    return ""


def number(value: object) -> ast.expr:
    """Return a Python number exactly; `inf` and the default `nan` as `jnp` names them."""
    match value:
        case float() if math.isnan(value):
            return public("jnp.nan")
        case float() if math.isinf(value):
            return public("jnp.inf") if value > 0 else unary("-", public("jnp.inf"))
        case bool() | int() | float():
            return ast.Constant(value)
        case complex():
            return call("complex", number(value.real), number(value.imag))
        case _:
            raise Unwritable(value)


def _short_float(value: Any) -> float:
    """Return the Python float with the fewest digits that rounds to `value` in its dtype."""
    exact = float(value)
    for digits in range(1, 18):
        short = float(f"{exact:.{digits}g}")
        if _bits(np.asarray(short).astype(value.dtype)) == _bits(value):
            return short
    return exact


def _bits(value: object) -> bytes:
    return np.asarray(value).tobytes()


@np.errstate(all="ignore")
def plain(value: object) -> ast.expr:
    """Return a scalar array's value as a Python number.

    Raise `Unwritable` if its bits would change.
    """
    array: Any = np.asarray(value)
    kind = "c" if array.dtype.kind == "c" else jnp.dtype(array.dtype).kind
    as_python: object
    if array.dtype == bool:
        as_python = bool(array)
    elif avals.is_subtype(array.dtype, np.integer):
        as_python = int(array)
    elif kind == "c":
        parts = np.asarray(array.real), np.asarray(array.imag)
        as_python = complex(*(math.nan if np.isnan(part) else _short_float(part) for part in parts))
    elif avals.is_subtype(array.dtype, np.floating):
        as_python = math.nan if np.isnan(array) else _short_float(array)
    else:
        raise Unwritable(array)
    if _bits(np.asarray(as_python).astype(array.dtype)) != _bits(array):
        raise Unwritable(array, "no Python number has its bits")
    return number(as_python)


def typed(value: object) -> ast.expr:
    """Return a scalar with its dtype: `np.float32(2.0)`, `jnp.bfloat16(2.0)`.

    NaNs other than the default are written by their bits.
    """
    array = np.asarray(value)
    if array.dtype == jax.dtypes.float0:
        return call("np.zeros", tuple_(()), dtype(array.dtype))
    native = array.dtype.isbuiltin == 1
    name = array.dtype.name
    try:
        inside = plain(array)
    except Unwritable:
        width = array.dtype.itemsize
        if width > 8:  # complex128: both halves
            return call("np.complex128", call("complex", typed(array.real), typed(array.imag)))
        bits = int(array.view(f"uint{8 * width}"))
        view = public(f"np.{name}") if native else dtype(array.dtype)
        return call(parsed(f"np.uint{8 * width}(0x{bits:X}).view"), view)
    if native:
        return call(f"np.{'bool_' if name == 'bool' else name}", inside)
    return call(flat(dtype(array.dtype)), inside)


def scalar(value: object, weak: bool) -> ast.expr:
    """Return a scalar that keeps its dtype and weak type wherever it is passed."""
    array = np.asarray(value)
    return plain(array) if weak else typed(array)


def identity(reduction: str, dtype: np.dtype) -> object:
    """Return the number that a `sum`, `prod`, `max`, `min`, `and`, `or` or `xor` starts from."""
    if reduction in ("max", "min"):
        if dtype == bool:
            return reduction == "min"
        if avals.is_subtype(dtype, np.integer):
            limits: Any = getattr(jnp, "iinfo")(dtype)  # noqa: B009 - it has no types
            return limits.max if reduction == "min" else limits.min
        return np.inf if reduction == "min" else -np.inf
    if reduction == "and":
        return True if dtype == bool else -1
    start = reduction == "prod"
    return float(start) if avals.is_subtype(dtype, np.inexact) else int(start)
