"""Values as expressions: parameters of equations, of any type.

All functions raise `Unwritable` rather than guess. Everything is spelled through public names.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from jaxsight.interpreters.compat import dtypes
from jaxsight.sourcerizer.errors import Unwritable
from jaxsight.sourcerizer.text.exprs import (
    NONE,
    Atom,
    Attribute,
    Expr,
    Keyword,
    Sequence_,
    call,
    dict_,
    is_identifier,
    list_,
    tuple_,
)
from jaxsight.sourcerizer.values.public_names import imported, primitive, public_path
from jaxsight.sourcerizer.values.scalars import dtype, number, text, typed


def value(given: Any) -> Expr:
    """Return an expression for any parameter of an equation; raise `Unwritable` if it has none."""
    match given:
        case None:
            return NONE
        case np.bool_() | np.number():
            return value(given.item()) if given.dtype.isbuiltin == 1 else typed(given)
        case enum.Enum():
            return _member(given)
        case bool() | int() | float() | complex():
            return number(given)
        case str():
            return text(given)
        case bytes():
            return Atom(repr(given))
        case np.dtype() | jax.dtypes.prng_key():
            return dtype(given)
        case _:
            expr = _collection(given)
            return expr if expr is not None else _of_jax(given)


def _collection(given: Any) -> Expr | None:
    """Return an expression for a collection of Python's or NumPy's, or None for other values."""
    match given:
        case tuple() if hasattr(given, "_fields"):
            return _fields(given, zip(given._fields, given, strict=True))
        case tuple() if type(given) is tuple:
            return tuple_(value(part) for part in given)
        case list():
            return list_(value(part) for part in given)
        case dict():
            return dict_((value(key), value(part)) for key, part in given.items())
        case range():
            step = () if given.step == 1 else (value(given.step),)
            return call("range", value(given.start), value(given.stop), *step)
        case slice():
            return call("slice", value(given.start), value(given.stop), value(given.step))
        case frozenset():
            return call("frozenset", list_(value(part) for part in sorted(given, key=repr)))
        case set() if given:
            return Sequence_("{", tuple(value(part) for part in sorted(given, key=repr)))
        case np.ndarray():
            return _array(given)
        case _:
            return None


def _of_jax(given: Any) -> Expr:
    """Return an expression for an object of JAX's, a function, or an object of another package."""
    match given:
        case jax.extend.core.Primitive():
            return primitive(given)
        case jax.tree_util.PyTreeDef():
            return _structure(given)
        case jax.Device():
            return Atom(
                f'jax.devices("{given.platform}")[{jax.devices(given.platform).index(given)}]'
            )
        case jax.sharding.PartitionSpec():
            return _call_by_path(given, [_spec_part(part) for part in given])
        case jax.sharding.NamedSharding() | jax.sharding.SingleDeviceSharding():
            return _sharding(given)
        case jax.sharding.AbstractMesh():
            types = [] if not given.axis_names else [value(tuple(given.axis_types))]
            sizes, names = value(given.axis_sizes), value(given.axis_names)
            return call("jax.sharding.AbstractMesh", sizes, names, *types)
        case jax.sharding.Mesh():
            return _mesh(given)
        case functools.partial():
            raise Unwritable(given)
        case _ if isinstance(given, type) or (
            callable(given) and not dataclasses.is_dataclass(given)
        ):
            return function(given)
        case _:
            return _object(given)


def _sharding(given: Any) -> Expr:
    memory_kind = _memory_kind(given)
    if isinstance(given, jax.sharding.SingleDeviceSharding):
        (device,) = given.device_set
        return call("jax.sharding.SingleDeviceSharding", value(device), **memory_kind)
    around = _is_around(given.mesh)
    mesh = call("jax.sharding.get_abstract_mesh") if around else value(given.mesh)
    return call("jax.sharding.NamedSharding", mesh, value(given.spec), **memory_kind)


def _structure(given: jax.tree_util.PyTreeDef) -> Expr:
    """Return the structure of a tree of zeros, whose containers have expressions."""
    try:
        tree = jax.tree.unflatten(given, [0] * given.num_leaves)
    except Exception as error:  # another package's container, which requires other leaves
        raise Unwritable(given) from error
    return call("jax.tree.structure", value(tree))


def _memory_kind(given: Any) -> dict[str, Expr]:
    """Return a sharding's memory kind as a keyword argument, unless it is the default."""
    usual = given.memory_kind in (None, "device")
    return {} if usual else {"memory_kind": text(given.memory_kind)}


def layout(given: Any) -> Expr:
    """Return an array's memory layout as a `jax.experimental.layout.Layout`."""
    path = imported("jax.experimental.layout", "Layout")
    if not hasattr(given, "major_to_minor"):
        return path.dot("AUTO")
    bits = getattr(given, "sub_byte_element_size_in_bits", None) or getattr(
        given, "_sub_byte_element_size_in_bits", 0
    )
    options = {} if given.tiling is None else {"tiling": value(given.tiling)}
    if bits:
        options["sub_byte_element_size_in_bits"] = value(bits)
    return call(path, value(tuple(given.major_to_minor)), **options)


def _is_around(mesh: Any) -> bool:
    """Return whether a mesh is the one of the surrounding program."""
    return bool(mesh.axis_names) and mesh == jax.sharding.get_abstract_mesh()


def abstract_mesh(given: Any) -> Expr:
    """Return a mesh without devices, or that of the machine's first devices of its kind."""
    kind = getattr(given, "abstract_device", None)
    if kind is None:
        return value(given)
    count = math.prod(given.axis_sizes)
    if count <= len(jax.devices()):
        devices = np.array(jax.devices()[:count]).reshape(given.axis_sizes)
        concrete = jax.sharding.Mesh(devices, given.axis_names, axis_types=given.axis_types)
        if concrete.abstract_mesh == given:
            return Attribute(value(concrete), "abstract_mesh")
    raise Unwritable(given, "its devices are not present")


def _spec_part(part: Any) -> Expr:
    if part is jax.sharding.PartitionSpec.UNCONSTRAINED:
        return Atom("jax.sharding.PartitionSpec.UNCONSTRAINED")
    return value(part)


def _mesh(given: jax.sharding.Mesh) -> Expr:
    """Return a mesh of the machine's devices, by their positions."""
    shape, names = given.devices.shape, given.axis_names
    if not names:
        raise Unwritable(given, "it has no devices")
    types = {"axis_types": value(tuple(given.axis_types))} if names else {}
    ids = [jax.devices().index(device) for device in given.devices.flat]
    if ids == list(range(len(ids))):
        devices: Expr = Atom(f"jax.devices()[:{len(ids)}]")
    else:
        devices = list_(Atom(f"jax.devices()[{index}]") for index in ids)
    array = call("np.array", devices)
    return call(
        "jax.sharding.Mesh", call(Attribute(array, "reshape"), value(shape)), value(names), **types
    )


def _array(given: np.ndarray[Any, Any]) -> Expr:
    """Return a small NumPy array, as it occurs in parameters."""
    if given.size > 64:
        raise Unwritable(given, "it has more than 64 elements")
    return call("np.array", _nested(given.tolist()), dtype=_numpy_dtype(given.dtype))


def _nested(parts: Any) -> Expr:
    return list_(_nested(part) for part in parts) if isinstance(parts, list) else number(parts)


def _numpy_dtype(given: Any) -> Expr:
    if given.isbuiltin == 1:
        return Atom(f"np.{'bool_' if given.name == 'bool' else given.name}")
    return dtype(given)


def function(given: Callable[..., Any] | type) -> Expr:
    """Return the path from which a function or class is imported."""
    if isinstance(given, type) and issubclass(given, np.generic):
        return dtype(given)
    path = public_path(given)
    if path is None:
        raise Unwritable(given)
    return path


def _member(given: enum.Enum) -> Expr:
    path = public_path(type(given))
    if path is None or not is_identifier(given.name or ""):
        raise Unwritable(given)
    return path.dot(given.name)


def _call_by_path(given: Any, items: Iterable[Expr]) -> Expr:
    path = public_path(type(given))
    if path is None:
        raise Unwritable(given)
    return call(path, *items)


def _fields(given: Any, fields: Iterable[tuple[str, Any]]) -> Expr:
    path = public_path(type(given))
    if path is None:
        raise Unwritable(given)
    return call(path, *(Keyword(name, value(part)) for name, part in fields))


def _object(given: Any) -> Expr:
    name = getattr(given, "name", None)
    if isinstance(name, str) and getattr(type(given), name, None) == given:
        path = public_path(type(given))  # an enum defined in C++
        if path is not None:
            return path.dot(name)
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        fields = [
            (field.name, getattr(given, field.name))
            for field in dataclasses.fields(given)
            if field.init
        ]
        return _fields(given, fields)
    if isinstance(given, jax.lax.Tolerance):
        return _fields(given, vars(given).items())
    if dtypes.is_subtype(getattr(given, "type", None), jax.dtypes.extended):
        return dtype(given)
    raise Unwritable(given)


def struct(aval: Any) -> Expr:
    """Return `jax.ShapeDtypeStruct((3,), jnp.float32)` for an array's abstract value."""
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        raise Unwritable(aval)
    weak = {"weak_type": Atom("True")} if getattr(aval, "weak_type", False) else {}
    return call("jax.ShapeDtypeStruct", value(tuple(aval.shape)), dtype(aval.dtype), **weak)
