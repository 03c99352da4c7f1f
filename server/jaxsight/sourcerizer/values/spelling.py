"""Values as expressions: numbers, dtypes, enums, dimension numbers, shardings, functions.

All functions raise `Unwritable` rather than guess. Everything is spelled through public names. A
scalar has several spellings (`2.0`, `np.float32(2.0)`): rules offer them in turn and the prover
chooses.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import math
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.extend.core.primitives
import jax.numpy as jnp
import numpy as np

from jaxsight.interpreters.compat import dtypes
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

_LONGEST = 40
"""The maximum length of a value in a message, in characters."""


class Unwritable(Exception):
    """A value has no expression through public names."""

    def __init__(self, value: Any, why: str = "") -> None:
        self.value = value
        about = f"{type(value).__module__}.{type(value).__qualname__}"
        shown = repr(value)
        if len(shown) > _LONGEST:
            shown = f"{shown[:_LONGEST]}…"
        super().__init__(f"no public expression for {shown} ({about}){': ' + why if why else ''}")


PUBLIC_MODULES = (
    "jax",
    "jax.numpy",
    "jax.lax",
    "jax.lax.linalg",
    "jax.nn",
    "jax.nn.initializers",
    "jax.random",
    "jax.sharding",
    "jax.tree_util",
    "jax.checkpoint_policies",
    "jax.ad_checkpoint",
    "jax.custom_derivatives",
    "jax.custom_batching",
    "jax.numpy.linalg",
    "jax.numpy.fft",
    "jax.scipy.special",
    "jax.scipy.linalg",
    "jax.scipy.stats",
    "jax.dtypes",
    "jax.debug",
    "jax.ffi",
    "jax.memory",
    "jax.experimental.layout",
    "jax.extend.core",
    "jax.extend.core.primitives",
    "jax.extend.random",
    "jax.experimental.pallas",
    "jax.experimental.sparse",
    "jax.experimental.compute_on",
)
"""The modules with public names of JAX, preferred ones first."""

SHORT = {
    "jax.numpy": "jnp",
    "jax.lax": "lax",
    "numpy": "np",
    "jax.extend.core.primitives": "primitives",
}
"""The names under which a written module imports modules."""

IMPORTS = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "lax": "from jax import lax",
    "np": "import numpy as np",
    "primitives": "from jax.extend.core import primitives",
    "ad": "from jax.interpreters import ad",
    "api_util": "from jax import api_util",
    "linear_util": "from jax.extend import linear_util",
}
"""The import statement of each name in written modules."""


@functools.cache
def _extended() -> dict[int, str]:
    """Return the names in `jax.extend.core.primitives`, by the primitive's `id`."""
    module = jax.extend.core.primitives
    return {id(getattr(module, name)): name for name in dir(module) if name.endswith("_p")}


_SOURCES = (
    "jax.make_jaxpr(jax.checkpoint(jnp.sin))(0.0)",
    "jax.make_jaxpr(lambda: lax.platform_dependent(cpu=lambda: 0.0, default=lambda: 1.0))()",
)
"""Programs made by public functions, with primitives that are in no public module."""


@functools.cache
def _obtained(source: str) -> dict[int, str]:
    """Return an expression for each primitive of such a program, by the primitive's `id`."""
    found: dict[int, str] = {}
    waiting = [(eval(source, {"jax": jax, "jnp": jnp, "lax": jax.lax}), source)]
    while waiting:
        jaxpr, path = waiting.pop()
        for index, equation in enumerate(jaxpr.eqns):
            found.setdefault(id(equation.primitive), f"{path}.eqns[{index}].primitive")
            waiting += [
                (inner, f'{path}.eqns[{index}].params["{key}"]')
                for key, inner in equation.params.items()
                if hasattr(inner, "eqns")
            ]
    return found


def _from_a_program(given: Any) -> str | None:
    for source in _SOURCES:
        found = _obtained(source).get(id(given))
        if found is not None:
            return found
    return None


def primitive(given: Any) -> str:
    """Return an expression for a primitive; raise `Unwritable` if there is none.

    It is read from a public module of JAX, a program of a public function, or another package.
    """
    name = _extended().get(id(given))
    if name is not None:
        return f"primitives.{name}"
    found = public_path(given) or _from_a_program(given) or elsewhere(given)
    if found is None:
        raise Unwritable(given, "the primitive is in no public module")
    return found


def elsewhere(given: Any) -> str | None:
    """Return the path of another package's object, or None.

    Public modules are preferred to private ones, then short paths to long ones.
    """
    places = [
        (module_name, name)
        for module_name, module in list(sys.modules.items())
        if module_name.partition(".")[0] not in ("jax", "jaxlib", "jaxsight", "__main__")
        for name, found in list(getattr(module, "__dict__", {}).items())
        if found is given and is_identifier(name)
    ]
    return _path(*min(places, key=_by_openness)) if places else None


def package_of(given: Any) -> str | None:
    """Return the package that defines a primitive, or None for JAX's own."""
    if id(given) in _extended() or public_path(given) or _from_a_program(given):
        return None
    path = elsewhere(given)
    return path.partition(".")[0] if path else None


def _by_openness(place: tuple[str, str]) -> tuple[bool, int, str]:
    return (_is_private(place[0]), place[0].count("."), place[0])


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


_AT_HAND = frozenset(
    {
        "jax", "jax.checkpoint_policies", "jax.debug", "jax.dtypes", "jax.ffi", "jax.lax",
        "jax.lax.linalg", "jax.memory", "jax.nn", "jax.numpy", "jax.numpy.fft", "jax.numpy.linalg",
        "jax.random", "jax.sharding", "jax.tree", "jax.tree_util",
    }
)  # fmt: skip
"""Modules that `import jax` imports."""

_LARGE = frozenset({"jax.experimental.pallas", "jax.experimental.sparse"})
"""Modules that are slow to import: searched only if the program has imported them."""

modules: dict[str, str] = {}
"""Paths in expressions, with the module to import for each."""


_TYPE_SOURCES = (
    "jnp.linalg.eigh", "jnp.linalg.qr", "jnp.linalg.slogdet", "jnp.linalg.svd", "jnp.linalg.eig",
    "jnp.unique_all", "jnp.unique_counts", "jnp.unique_inverse",
)  # fmt: skip
"""Functions whose results have types that are in no public module."""


@functools.cache
def _result_types() -> dict[int, str]:
    """Return expressions for these types, by the type's `id`."""
    found: dict[int, str] = {}
    for function in _TYPE_SOURCES:
        text = f"jax.eval_shape({function}, jnp.ones((1, 1)))"
        try:
            made = eval(text, {"jax": jax, "jnp": jnp})
        except (
            AttributeError,
            TypeError,
            ValueError,
            NotImplementedError,
            jax.errors.JAXTypeError,
        ):
            continue
        found[id(type(made))] = f"type({text})"
    return found


def type_path(given: type) -> str | None:
    """Return an expression for a type: its public path, or a public function's result type."""
    return public_path(given) or _result_types().get(id(given))


def _path(module: str, name: str) -> str:
    path = f"{SHORT.get(module, module)}.{name}"
    if module not in SHORT and module not in _AT_HAND:
        modules[path] = module
    return path


def _namespace(name: str) -> Any:
    """Return a module of JAX, or an object that serves as one; None if this JAX has none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        found: Any = jax
        for part in name.split(".")[1:]:
            found = getattr(found, part, None)
        return found


def _public_names() -> dict[int, tuple[Any, str, str]]:
    """Return JAX's public functions, classes and primitives, by `id`."""
    return _names_without(frozenset(_LARGE - sys.modules.keys()))


@functools.cache
def _names_without(left_out: frozenset[str]) -> dict[int, tuple[Any, str, str]]:
    found: dict[int, tuple[Any, str, str]] = {}
    for module_name in PUBLIC_MODULES:
        if module_name in left_out:
            continue
        module = _namespace(module_name)
        for name in dir(module):
            if name.startswith("_"):
                continue
            try:
                value = getattr(module, name)
            except AttributeError:
                continue
            if isinstance(value, types.ModuleType) or not (
                callable(value) or isinstance(value, (type, jax.extend.core.Primitive))
            ):
                continue
            found.setdefault(id(value), (value, module_name, name))
    return found


def public_path(value: Any) -> str | None:
    """Return the public path of an object of any package, or None for a private one.

    An example is `lax.GatherDimensionNumbers`.
    """
    known = _public_names().get(id(value))
    if known is not None and known[0] is value:
        return _path(known[1], known[2])
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    if module == "builtins":
        return name
    if module.partition(".")[0] in ("jax", "jaxlib") and "._" in module:
        return None
    if module.partition(".")[0] in ("jaxlib", "__main__"):
        return None
    homes = [module, *_public_homes(module)] if _is_private(module) else [module]
    if "._" in module:
        homes.remove(module)  # private to the package
    for home in sorted(homes, key=lambda home: _by_openness((home, name))):
        found: Any = sys.modules.get(home)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is value:
            return _path(home, name)
    return None


def _public_homes(module: str) -> list[str]:
    """Return the public modules of a private module's package, which may export its objects."""
    root = module.partition(".")[0]
    return [
        name
        for name in list(sys.modules)
        if name.partition(".")[0] == root and not _is_private(name)
    ]


def functions_called(name: str, root: str) -> list[str]:
    """Return the paths of a package's public functions of that name, the shortest first."""
    found = [
        (module_name, name)
        for module_name in _public_homes(root)
        if callable(getattr(sys.modules[module_name], name, None))
    ]
    return [_path(*place) for place in sorted(found, key=_by_openness)]


def dtype(value: Any) -> Expr:
    """Return `jnp.float32`; for a dtype of PRNG keys, that of a key."""
    if dtypes.is_subtype(value, jax.dtypes.prng_key):
        impl = dtypes.key_impl(value)
        return Atom(f'jax.random.key(0, impl="{impl}").dtype')
    found = np.dtype(value)
    if found == jax.dtypes.float0:
        return Atom("jax.dtypes.float0")
    name = "bool_" if found.name == "bool" else found.name
    if not hasattr(jnp, name):
        raise Unwritable(value)
    return Atom(f"jnp.{name}")


def kind(given: Any) -> str:
    """Return `f`, `i`, `u`, `c` or `b` for a dtype, also for small ones; empty for others."""
    for letter, family in (
        ("b", np.bool_), ("i", np.signedinteger), ("u", np.unsignedinteger),
        ("f", np.floating), ("c", np.complexfloating),
    ):  # fmt: skip
        if dtypes.is_subtype(given, family):
            return letter
    return ""


def number(value: Any) -> Expr:
    """Return a Python number exactly; `inf` and the default `nan` as `jnp` names them."""
    match value:
        case bool() | int():
            return Atom(repr(value))
        case float() if math.isnan(value):
            return Atom("jnp.nan")
        case float() if math.isinf(value):
            return Atom("jnp.inf" if value > 0 else "-jnp.inf")
        case float():
            return Atom(repr(value).replace("e+", "e"))
        case complex():
            return call("complex", number(value.real), number(value.imag))
        case _:
            raise Unwritable(value)


def _short_float(value: Any) -> float:
    """Return the Python float with the fewest digits that rounds to `value` in its dtype."""
    whole = float(value)
    for digits in range(1, 18):
        short = float(f"{whole:.{digits}g}")
        if _bits(np.asarray(short).astype(value.dtype)) == _bits(value):
            return short
    return whole


def _bits(value: Any) -> bytes:
    return np.asarray(value).tobytes()


def plain(value: Any) -> Expr:
    """Return a scalar array's value as a Python number.

    Raise `Unwritable` if its bits would change.
    """
    with np.errstate(all="ignore"):
        return _plain(np.asarray(value))


def _plain(found: Any) -> Expr:
    kind = "c" if found.dtype.kind == "c" else jnp.dtype(found.dtype).kind
    as_python: Any
    if found.dtype == bool:
        as_python = bool(found)
    elif dtypes.is_subtype(found.dtype, np.integer):
        as_python = int(found)
    elif kind == "c":
        parts = np.asarray(found.real), np.asarray(found.imag)
        as_python = complex(*(math.nan if np.isnan(part) else _short_float(part) for part in parts))
    elif dtypes.is_subtype(found.dtype, np.floating):
        as_python = math.nan if np.isnan(found) else _short_float(found)
    else:
        raise Unwritable(found)
    if _bits(np.asarray(as_python).astype(found.dtype)) != _bits(found):
        raise Unwritable(found, "no Python number has its bits")
    return number(as_python)


def typed(value: Any) -> Expr:
    """Return a scalar with its dtype: `np.float32(2.0)`, `jnp.bfloat16(2.0)`.

    NaNs other than the default are written by their bits.
    """
    found = np.asarray(value)
    if found.dtype == jax.dtypes.float0:
        return call("np.zeros", Atom("()"), dtype(found.dtype))
    native = found.dtype.isbuiltin == 1
    name = found.dtype.name
    try:
        inside = plain(found)
    except Unwritable:
        width = found.dtype.itemsize
        if width > 8:  # complex128: both halves
            return call("np.complex128", call("complex", typed(found.real), typed(found.imag)))
        bits = int(found.view(f"uint{8 * width}"))
        made = call(f"np.uint{8 * width}", Atom(f"0x{bits:X}"))
        view = Atom(f"np.{name}") if native else dtype(found.dtype)
        return call(f"{_flat(made)}.view", view)
    if native:
        return call(f"np.{'bool_' if name == 'bool' else name}", inside)
    return call(_flat(dtype(found.dtype)), inside)


def _flat(expr: Expr) -> str:
    from jaxsight.sourcerizer.text.layout import flat

    return flat(expr)


def text(value: str) -> Expr:
    """Return a string literal, in double quotes as formatters write it."""
    shown = repr(value)
    if shown.startswith("'") and '"' not in value:
        shown = '"' + shown[1:-1].replace("\\'", "'") + '"'
    return Atom(shown)


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
        case tuple() if hasattr(given, "_fields"):
            return _fields(given, zip(given._fields, given, strict=True))
        case tuple() if type(given) is tuple:
            return tuple_(value(part) for part in given)
        case list():
            return list_(value(part) for part in given)
        case dict():
            return dict_((value(key), value(part)) for key, part in given.items())
        case jax.extend.core.Primitive():
            return Atom(primitive(given))
        case jax.tree_util.PyTreeDef():
            return _structure(given)
        case jax.Device():
            return Atom(
                f'jax.devices("{given.platform}")[{jax.devices(given.platform).index(given)}]'
            )
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
        case jax.sharding.PartitionSpec():
            return _call_by_path(given, [_spec_part(part) for part in given])
        case jax.sharding.NamedSharding():
            around = _is_around(given.mesh)
            mesh = call("jax.sharding.get_abstract_mesh") if around else value(given.mesh)
            kind = _memory_kind(given)
            return call("jax.sharding.NamedSharding", mesh, value(given.spec), **kind)
        case jax.sharding.SingleDeviceSharding():
            (device,) = given.device_set
            return call("jax.sharding.SingleDeviceSharding", value(device), **_memory_kind(given))
        case jax.sharding.AbstractMesh():
            types = [] if not given.axis_names else [value(tuple(given.axis_types))]
            return call(
                "jax.sharding.AbstractMesh",
                value(given.axis_sizes),
                value(given.axis_names),
                *types,
            )
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


def imported(module: str, name: str) -> str:
    """Return the path of a public name, and record its module for import."""
    path = f"{module}.{name}"
    modules[path] = module
    return path


def layout(given: Any) -> Expr:
    """Return an array's memory layout as a `jax.experimental.layout.Layout`."""
    path = imported("jax.experimental.layout", "Layout")
    if not hasattr(given, "major_to_minor"):
        return Atom(f"{path}.AUTO")
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
    return Atom(path)


def _member(given: enum.Enum) -> Expr:
    path = public_path(type(given))
    if path is None or not is_identifier(given.name or ""):
        raise Unwritable(given)
    return Atom(f"{path}.{given.name}")


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
            return Atom(f"{path}.{name}")
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
