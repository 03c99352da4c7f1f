"""The public names of objects of JAX and other packages: functions, classes, primitives.

The root of a name has the module to import for it.
"""

from __future__ import annotations

import ast
import functools
import importlib
import sys
import types

import jax
import jax.extend.core.primitives
import jax.numpy as jnp

from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import AT_HAND, SHORT, dotted, is_identifier, parsed, public

PUBLIC_MODULES = (
    "jax", "jax.numpy", "jax.lax", "jax.lax.linalg", "jax.nn", "jax.nn.initializers", "jax.random",
    "jax.sharding", "jax.tree_util", "jax.checkpoint_policies", "jax.ad_checkpoint",
    "jax.custom_derivatives", "jax.custom_batching", "jax.numpy.linalg", "jax.numpy.fft",
    "jax.scipy.special", "jax.scipy.linalg", "jax.scipy.stats", "jax.dtypes", "jax.debug",
    "jax.ffi", "jax.memory", "jax.experimental.layout", "jax.extend.core",
    "jax.extend.core.primitives", "jax.extend.random", "jax.experimental.pallas",
    "jax.experimental.pallas.tpu", "jax.experimental.pallas.triton", "jax.experimental.sparse",
    "jax.experimental.compute_on",
)  # fmt: skip
"""The modules with public names of JAX, preferred ones first."""

_LARGE = frozenset([
    "jax.experimental.pallas", "jax.experimental.pallas.tpu", "jax.experimental.pallas.triton",
    "jax.experimental.sparse",
])  # fmt: skip
"""Modules that are slow to import: searched only if the program has imported them."""


@functools.cache
def _extended() -> dict[int, str]:
    """Return the names in `jax.extend.core.primitives`, by the primitive's `id`."""
    module = jax.extend.core.primitives
    return {id(getattr(module, name)): name for name in dir(module) if name.endswith("_p")}


_SOURCES = (
    "jax.make_jaxpr(jax.checkpoint(jnp.sin))(0.0)",
    "jax.make_jaxpr(lambda: lax.platform_dependent(cpu=lambda: 0.0, default=lambda: 1.0))()",
)
"""Programs of public functions that begin with primitives which are in no public module."""


@functools.cache
def _obtained() -> dict[int, str]:
    """Return expressions for these primitives, by the primitive's `id`."""
    names = {"jax": jax, "jnp": jnp, "lax": jax.lax}
    texts = [f"{source}.eqns[0].primitive" for source in _SOURCES]
    return {id(eval(text, names)): text for text in texts}


def _from_a_program(primitive: object) -> ast.expr | None:
    text = _obtained().get(id(primitive))
    return None if text is None else parsed(text)


def primitive(subject: object) -> ast.expr:
    """Return the name of a primitive; raise `Unwritable` if there is none.

    It is read from a public module of JAX, a program of a public function, or another package.
    """
    name = _extended().get(id(subject))
    if name is not None:
        return public(f"primitives.{name}")
    path = public_path(subject) or _from_a_program(subject) or elsewhere(subject)
    if path is None:
        raise Unwritable(subject, "the primitive is in no public module")
    return path


def elsewhere(subject: object) -> ast.expr | None:
    """Return the path of another package's object, or None.

    Public modules are preferred to private ones, then short paths to long ones.
    """
    places = [
        (module_name, name)
        for module_name, module in list(sys.modules.items())
        if module_name.partition(".")[0] not in ("jax", "jaxlib", "jaxsight", "__main__")
        for name, value in list(getattr(module, "__dict__", {}).items())
        if value is subject and is_identifier(name)
    ]
    return at_hand(*min(places, key=_by_openness)) if places else None


def package_of(subject: object) -> str | None:
    """Return the package that defines a primitive, or None for JAX's own."""
    if id(subject) in _extended() or public_path(subject) or _from_a_program(subject):
        return None
    path = elsewhere(subject)
    return dotted(path).partition(".")[0] if path else None


def _by_openness(module_and_name: tuple[str, str]) -> tuple[bool, int, str]:
    return (_is_private(module_and_name[0]), module_and_name[0].count("."), module_and_name[0])


def _is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


_TYPE_SOURCES = (
    "jnp.linalg.eigh", "jnp.linalg.qr", "jnp.linalg.slogdet", "jnp.linalg.svd", "jnp.linalg.eig",
    "jnp.unique_all", "jnp.unique_counts", "jnp.unique_inverse",
)  # fmt: skip
"""Functions whose results have types that are in no public module."""


_FAILURES = AttributeError, TypeError, ValueError, NotImplementedError, jax.errors.JAXTypeError


@functools.cache
def _result_types() -> dict[int, str]:
    """Return expressions for these types, by the type's `id`."""
    texts: dict[int, str] = {}
    for function in _TYPE_SOURCES:
        text = f"jax.eval_shape({function}, jnp.ones((1, 1)))"
        try:
            example = eval(text, {"jax": jax, "jnp": jnp})
        except _FAILURES:
            continue
        texts[id(type(example))] = f"type({text})"
    return texts


def type_path(cls: type) -> ast.expr | None:
    """Return an expression for a type: its public path, or a public function's result type."""
    path = public_path(cls)
    if path is None and (text := _result_types().get(id(cls))) is not None:
        path = parsed(text)
    return path


def at_hand(module: str, name: str) -> ast.expr:
    """Return the path of a public name, by the module's short name if it has one."""
    if module in SHORT or module in AT_HAND:
        return public(f"{SHORT.get(module, module)}.{name}")
    return imported(module, name)


def _namespace(name: str) -> object:
    """Return a module of JAX, or an object that serves as one; None if this JAX has none."""
    try:
        return importlib.import_module(name)
    except ImportError:
        namespace: object = jax
        for part in name.split(".")[1:]:
            namespace = getattr(namespace, part, None)
        return namespace


@functools.cache
def _names_without(left_out: frozenset[str]) -> dict[int, tuple[object, str, str]]:
    """Return JAX's public functions, classes and primitives, by `id`, except those of modules."""
    names: dict[int, tuple[object, str, str]] = {}
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
            names.setdefault(id(value), (value, module_name, name))
    return names


def public_path(value: object) -> ast.expr | None:
    """Return the public path of an object of any package, or None for a private one.

    An example is `lax.GatherDimensionNumbers`.
    """
    entry = _names_without(frozenset(_LARGE - sys.modules.keys())).get(id(value))
    if entry is not None and entry[0] is value:
        return at_hand(entry[1], entry[2])
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or "<" in name:
        return None
    if module == "builtins":
        return ast.Name(name)
    if module.partition(".")[0] in ("jax", "jaxlib") and "._" in module:
        return None
    if module.partition(".")[0] in ("jaxlib", "__main__"):
        return None
    homes = [module, *_public_homes(module)] if _is_private(module) else [module]
    if "._" in module:
        homes.remove(module)  # private to the package
    for home in sorted(homes, key=lambda home: _by_openness((home, name))):
        exported: object = sys.modules.get(home)
        for part in name.split("."):
            exported = getattr(exported, part, None)
        if exported is value:
            return at_hand(home, name)
    return None


def path_of(value: object, subject: object) -> ast.expr:
    """Return the public path of a function or class; raise `Unwritable` for `subject` without."""
    path = public_path(value)
    if path is None:
        raise Unwritable(subject)
    return path


def _public_homes(module: str) -> list[str]:
    """Return the public modules of a private module's package, which may export its objects."""
    root = module.partition(".")[0]
    return [
        name
        for name in list(sys.modules)
        if name.partition(".")[0] == root and not _is_private(name)
    ]


def functions_called(name: str, root: str) -> list[ast.expr]:
    """Return the paths of a package's public functions of that name, the shortest first."""
    homes = [
        (module_name, name)
        for module_name in _public_homes(root)
        if callable(getattr(sys.modules[module_name], name, None))
    ]
    return [at_hand(*home) for home in sorted(homes, key=_by_openness)]


def imported(module: str, name: str) -> ast.expr:
    """Return the path of a public name whose module has to be imported."""
    return public(f"{module}.{name}", module)
