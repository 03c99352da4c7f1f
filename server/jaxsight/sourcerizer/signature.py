"""How a function is called: which arguments are traced, and the Python that takes them apart and
puts results together.

The written function has the parameters of the original. What the original took as it is (a static
argument, a default that was not passed) is built into the program, so the written function checks
that it is given the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.tree_util import (
    DictKey,
    GetAttrKey,
    SequenceKey,
)

from jaxsight.sourcerizer import spelling
from jaxsight.sourcerizer.compat import functions
from jaxsight.sourcerizer.exprs import (
    Atom,
    Attribute,
    Expr,
    Index,
    call,
    is_identifier,
)
from jaxsight.sourcerizer.names import identifier, of_path

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class Argument:
    """A leaf that is traced: the expression that reads it, a name for it, and its value."""

    expr: Expr
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Fixed:
    """A leaf or parameter that the program was made for."""

    expr: Expr
    value: Any
    parameter: str
    """Which it is, or is part of."""
    defaulted: bool = False
    """It is a default that no text can hold, and was not passed: `...` stands for it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The value of a parameter, as a pytree of which some leaves are traced."""

    leaves: Sequence[Any]
    tree: Any
    places: Sequence[int]
    """Of each leaf among those that are traced; -1 for the others."""

    def rebuilt(self, traced: Sequence[Any]) -> Any:
        pairs = zip(self.leaves, self.places, strict=True)
        return jax.tree.unflatten(
            self.tree, [leaf if place < 0 else traced[place] for leaf, place in pairs]
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the original function."""

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    """As in a `def`, with defaults, `*` and `/`."""
    arguments: tuple[Argument, ...]
    fixed: tuple[Fixed, ...]
    bound: inspect.BoundArguments
    parts: Mapping[str, _Part]
    """Of the parameters that are not static."""

    def rebuild(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments and keyword arguments from values of the traced leaves."""
        given = self.bound.arguments | {
            name: part.rebuilt(leaves) for name, part in self.parts.items()
        }
        again = inspect.BoundArguments(self.bound.signature, given)
        return again.args, again.kwargs

    def flat(self, *leaves: Any) -> Any:
        args, kwargs = self.rebuild(leaves)
        results = functions.traceable(self.function)(*args, **kwargs)
        for leaf in jax.tree.leaves(results):
            try:
                jax.typeof(leaf)
            except TypeError:
                words = (
                    f"{name_of(self.function)} gives a {type(leaf).__name__}, and only arrays and "
                    "pytrees of arrays can be results"
                )
                raise TypeError(words) from None
        return results


def is_traced(value: Any) -> bool:
    """Whether JAX traces a leaf, rather than taking it as it is."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "OSUMm":
        return False
    return isinstance(value, _ARRAYS) or hasattr(value, "__jax_array__")


_KINDS = {
    inspect.CO_COROUTINE: "an async function",
    inspect.CO_ASYNC_GENERATOR: "an async generator",
    inspect.CO_GENERATOR: "a generator",
}
"""Functions that JAX does not trace, by the flag of their code."""


def _refuse_other_kinds(function: Any) -> None:
    if not callable(function):
        raise TypeError(f"{type(function).__name__} object cannot be written: it is no function")
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    for flag, kind in _KINDS.items():
        if flags & flag:
            raise TypeError(
                f"{name_of(function)} cannot be written: it is {kind}, which JAX does not trace"
            )


def bind(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    traced: Callable[[Any], bool] = is_traced,
) -> Call:
    """Reads a call, of which the leaves that are `traced` may vary.

    Raises:
        TypeError: the function cannot be called so, or is none that gives arrays when it is called.
    """
    _refuse_other_kinds(function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        signature = inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )
    bound = signature.bind(*args, **kwargs)
    static = functions.told(function)
    arguments: list[Argument] = []
    fixed: list[Fixed] = []
    parameters = list(signature.parameters.values())
    parts: dict[str, _Part] = {}
    for position, parameter in enumerate(parameters):
        name = parameter.name
        if name not in bound.arguments:
            if parameter.default is not inspect.Parameter.empty:
                unheld = _default(parameter.default) == "..."
                fixed.append(Fixed(Atom(name), parameter.default, name, unheld))
            continue
        given = bound.arguments[name]
        if position in static.positions or name in static.names:
            fixed.append(Fixed(Atom(name), given, name))
            continue
        paths, tree = jax.tree_util.tree_flatten_with_path(given)
        places = []
        for path, leaf in paths:
            expr, called = _reader(name, given, path)
            if traced(leaf):
                places.append(len(arguments))
                arguments.append(Argument(expr, called, leaf))
            else:
                places.append(-1)
                fixed.append(Fixed(expr, leaf, name))
        parts[name] = _Part([leaf for _, leaf in paths], tree, places)
    return Call(function, _shown(parameters), tuple(arguments), tuple(fixed), bound, parts)


def _shown(parameters: Sequence[inspect.Parameter]) -> tuple[str, ...]:
    """Parameters as text.

    A default that no text can hold becomes `...`, which the check refuses to confuse with a value.
    """
    shown: list[str] = []
    kinds = [parameter.kind for parameter in parameters]
    for index, parameter in enumerate(parameters):
        if (
            parameter.kind is inspect.Parameter.KEYWORD_ONLY
            and "*" not in shown
            and inspect.Parameter.VAR_POSITIONAL not in kinds
        ):
            shown.append("*")
        prefix = ""
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            prefix = "*"
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            prefix = "**"
        default = ""
        if parameter.default is not inspect.Parameter.empty:
            default = f"={_default(parameter.default)}"
        shown.append(f"{prefix}{parameter.name}{default}")
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and (
            index + 1 == len(kinds) or kinds[index + 1] is not inspect.Parameter.POSITIONAL_ONLY
        ):
            shown.append("/")
    return tuple(shown)


def _default(given: Any) -> str:
    if isinstance(given, (bool, int, float, str, type(None))):
        from jaxsight.sourcerizer.layout import flat

        return flat(spelling.value(given))
    return "..."


def _reader(parameter: str, whole: Any, path: tuple[Any, ...]) -> tuple[Expr, str]:
    """How a leaf is read from its parameter, and what it may be called."""
    expr: Expr = Atom(parameter)
    name = parameter
    found = whole
    for key in path:
        match key:
            case DictKey(key=inner) if (key_said := _said(inner)) is not None:
                expr = Index(expr, (key_said,))
                found = found[inner]
                name = f"{name}_{inner}"
            case SequenceKey(idx=index):
                expr = Index(expr, (Atom(str(index)),))
                found = found[index]
                name = f"{name}_{index}"
            case GetAttrKey(name=attribute) if is_identifier(attribute):
                expr = Attribute(expr, attribute)
                found = getattr(found, attribute)
                name = attribute if name == "self" else f"{name}_{attribute}"
            case _:
                leaves = jax.tree_util.tree_flatten_with_path(whole)[0]
                position = [leaf_path for leaf_path, _ in leaves].index(path)
                flat = call("jax.tree.leaves", Atom(parameter))
                return Index(flat, (Atom(str(position)),)), f"{parameter}_{position}"
    return expr, of_path(name, parameter)


def _said(key: Any) -> Expr | None:
    """The key of a dictionary as text; None for one that no text can say, as of an `enum` in a
    function.
    """
    try:
        return spelling.value(key)
    except spelling.Unwritable:
        return None


def name_of(function: Callable[..., Any]) -> str:
    """What to call the written function."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if is_identifier(str(name)) and str(name).strip("_"):
        return str(name)
    return identifier(str(name), "function") if name != "<lambda>" else "function"
