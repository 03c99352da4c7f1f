"""How a function is called: its traced arguments, and how they are read from the parameters.

The written function has the parameters of the original. Values that the original used unchanged (a
static argument, a default that was not passed) are built into the program, so the written function
checks that they are the same.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import jax
import numpy as np
from jax.tree_util import DictKey, GetAttrKey, SequenceKey

from jaxsight_source.compat import avals
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.parameters import compiler_options, is_jitted, told, traceable
from jaxsight_source.compat.staging import Program, abstract, is_ref, opened, stage
from jaxsight_source.errors import Untraceable
from jaxsight_source.jaxprs.base import room_for_nesting
from jaxsight_source.jaxprs.same.liveness import live
from jaxsight_source.proof.running import is_number_type
from jaxsight_source.rules.functions.calls import jit_options
from jaxsight_source.text.exprs import arguments, call, is_identifier, subscript
from jaxsight_source.text.layout import flat
from jaxsight_source.text.layout import parameters as texts_of
from jaxsight_source.text.names import identifier, of_path
from jaxsight_source.values import spelling
from jaxsight_source.values.pytrees import spelled_keys
from jaxsight_source.values.spelling import value

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, bool, int, float, complex)


@dataclass(frozen=True, slots=True)
class TracedArgument:
    """A traced leaf: the expression that reads it, a name for it, and its value."""

    expr: ast.expr
    name: str
    value: object


@dataclass(frozen=True, slots=True)
class Fixed:
    """A leaf or parameter whose value is built into the program."""

    expr: ast.expr
    value: object
    parameter: str
    """The parameter that it is, or is part of."""
    defaulted: bool = False
    """Whether it is an omitted argument whose default has no expression; `...` replaces it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The value of a parameter, as a pytree of traced and other leaves."""

    leaves: Sequence[object]
    tree: object
    places: Sequence[int]
    """For each leaf, its position among all traced leaves, or -1."""

    def rebuilt(self, traced: Sequence[object]) -> object:
        pairs = zip(self.leaves, self.places, strict=True)
        return jax.tree.unflatten(
            self.tree, [leaf if position < 0 else traced[position] for leaf, position in pairs]
        )


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call of the original function."""

    function: Callable[..., Any]
    parameters: tuple[str, ...]
    """The parameters as in a `def`, with defaults, `*` and `/`."""
    arguments: tuple[TracedArgument, ...]
    fixed: tuple[Fixed, ...]
    bound: inspect.BoundArguments
    parts: Mapping[str, _Part]
    """The parts of the parameters that are not static."""

    def rebuild(self, leaves: Sequence[object]) -> tuple[tuple[object, ...], dict[str, object]]:
        """Return arguments and keyword arguments for values of the traced leaves."""
        arguments = self.bound.arguments | {
            name: part.rebuilt(leaves) for name, part in self.parts.items()
        }
        again = inspect.BoundArguments(self.bound.signature, arguments)
        return again.args, again.kwargs

    def flat(self, *leaves: object) -> object:
        args, kwargs = self.rebuild(leaves)
        results = traceable(self.function)(*args, **kwargs)
        for leaf in jax.tree.leaves(results):
            try:
                jax.typeof(leaf)
            except TypeError:
                words = (
                    f"{name_of(self.function)} returns a {type(leaf).__name__}, "
                    "not an array or a pytree of arrays"
                )
                raise Untraceable(words) from None
        return results


def is_traced(value: object) -> bool:
    """Return whether JAX traces a leaf, instead of using it unchanged."""
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "OSUMm":
        return False
    return isinstance(value, _ARRAYS) or hasattr(value, "__jax_array__")


_KINDS = {
    inspect.CO_COROUTINE: "an async function",
    inspect.CO_ASYNC_GENERATOR: "an async generator",
    inspect.CO_GENERATOR: "a generator",
}
"""Functions that JAX does not trace, by the flag of their code object."""


def _refuse_other_kinds(function: Any) -> None:
    if not callable(function):
        raise Untraceable(f"{type(function).__name__} object cannot be written: not a function")
    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    inner = inspect.unwrap(inner)
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)
    for flag, kind in _KINDS.items():
        if flags & flag:
            raise Untraceable(
                f"{name_of(function)} cannot be written: it is {kind}, which JAX does not trace"
            )


def bind(
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
    traced: Callable[[object], bool] = is_traced,
) -> BoundCall:
    """Read a call whose `traced` leaves may vary.

    Raises:
        TypeError: if the arguments do not match.
        Untraceable: if JAX cannot trace the function.
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
    static = told(function).static
    arguments: list[TracedArgument] = []
    fixed: list[Fixed] = []
    parameters = list(signature.parameters.values())
    parts: dict[str, _Part] = {}
    for parameter in parameters:
        name = parameter.name
        if name not in bound.arguments:
            if parameter.default is not inspect.Parameter.empty:
                unheld = _default(parameter.default) == "..."
                fixed.append(Fixed(ast.Name(name), parameter.default, name, unheld))
            continue
        value = bound.arguments[name]
        if name in static:
            fixed.append(Fixed(ast.Name(name), value, name))
            continue
        paths, tree = _leaves(value, parameter, traced)
        places = []
        for path, leaf in paths:
            expr, called = _reader(name, value, path)
            if traced(leaf):
                places.append(len(arguments))
                arguments.append(TracedArgument(expr, called, leaf))
            else:
                places.append(-1)
                fixed.append(Fixed(expr, leaf, name))
        parts[name] = _Part([leaf for _, leaf in paths], tree, places)
    return BoundCall(function, _shown(parameters), tuple(arguments), tuple(fixed), bound, parts)


_PLAIN = (bool, int, float, complex, str, type(None))


def _leaves(
    value: object, parameter: inspect.Parameter, traced: Callable[[object], bool]
) -> tuple[list[tuple[tuple[object, ...], Any]], jax.tree_util.PyTreeDef]:
    """Return the leaves of a parameter's value with their paths, and its structure.

    A container of plain values that are not traced is one leaf, which is checked at once.
    """

    def is_whole(part: object) -> bool:
        is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        return is_plain(part) and not (is_variadic and part is value)

    def is_plain(part: object) -> bool:
        if type(part) not in (list, tuple, dict) or not part:
            return False
        parts = part.values() if isinstance(part, dict) else part
        return all(
            is_plain(each) or (type(each) in _PLAIN and not traced(each) and each == each)  # noqa: PLR0124 - NaN
            for each in cast(Iterable[object], parts)
        )

    paths, tree = jax.tree_util.tree_flatten_with_path(value, is_leaf=is_whole)
    if all(_read("", path) for path, leaf in paths if is_whole(leaf)):
        return paths, tree
    return jax.tree_util.tree_flatten_with_path(value)


def _shown(parameters: Sequence[inspect.Parameter]) -> tuple[str, ...]:
    """Return parameters as text.

    A default without an expression becomes `...`, which the check distinguishes from a value.
    """
    empty = inspect.Parameter.empty
    plain = [
        parameter.replace(
            annotation=empty,
            default=empty
            if parameter.default is empty
            else avals.Unquoted(_default(parameter.default)),
        )
        for parameter in parameters
    ]
    text = str(inspect.Signature(plain))[1:-1]
    return tuple(texts_of(arguments([text])))


def _default(default: object) -> str:
    if isinstance(default, (bool, int, float, str, type(None))):
        return flat(spelling.value(default))
    return "..."


def _reader(parameter: str, value: object, path: tuple[object, ...]) -> tuple[ast.expr, str]:
    """Return the expression that reads a leaf from its parameter, and a name for it."""
    if (read := _read(parameter, path)) is not None:
        expr, name = read
        return expr, of_path(name, parameter)
    leaves = jax.tree_util.tree_flatten_with_path(value)[0]
    position = [leaf_path for leaf_path, _ in leaves].index(path)
    flat = call("jax.tree.leaves", ast.Name(parameter))
    return subscript(flat, ast.Constant(position)), f"{parameter}_{position}"


def _read(parameter: str, path: tuple[object, ...]) -> tuple[ast.expr, str] | None:
    """Return the expression of a path, and a name; None if a key has no expression."""
    expr: ast.expr = ast.Name(parameter)
    name = parameter
    for key in path:
        match key:
            case DictKey(key=inner) if (keys := spelled_keys([inner])) is not None:
                expr = subscript(expr, *keys)
                name = f"{name}_{inner}"
            case SequenceKey(idx=index):
                expr = subscript(expr, ast.Constant(index))
                name = f"{name}_{index}"
            case GetAttrKey(name=attribute) if is_identifier(attribute):
                expr = ast.Attribute(expr, attribute)
                name = attribute if name == "self" else f"{name}_{attribute}"
            case _:
                return None
    return expr, name


def name_of(function: Callable[..., object]) -> str:
    """Return a name for the written function."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    if is_identifier(str(name)) and str(name).strip("_"):
        return str(name)
    return identifier(str(name), "function") if name != "<lambda>" else "function"


@dataclass(frozen=True, slots=True)
class TracedCall:
    """The program of a call, the tree of its results, and which of them are Python numbers.

    `structure` is a `PyTreeDef`.
    """

    jaxpr: object
    structure: object
    numbers: tuple[bool, ...]


def trace(call: BoundCall) -> TracedCall:
    """Trace a call; raise whatever its function raises."""
    values = [argument.value for argument in call.arguments]
    if any(map(is_ref, values)):
        jax.make_jaxpr(call.flat)(*values)  # raises if a ref is passed twice
    names = [flat(argument.expr) for argument in call.arguments]
    with room_for_nesting():
        staged = stage(call.flat, list(map(abstract, values)), call.function, names)
    return TracedCall(staged.program, staged.tree, tuple(map(is_number_type, staged.types)))


def jitted(call: BoundCall, program: Program) -> tuple[Program, dict[str, ast.expr]] | None:
    """Return the program inside a jitted function and the options of its `jax.jit`, or None.

    Return None if its program is not a single call, depends on shardings of arguments or results,
    or if it has `*args` and static or donated positions.
    """
    if not is_jitted(call.function):
        return None
    equation = only_call(program)
    if equation is None:
        return None
    options = jit_options(equation.params)
    if "in_shardings" in options or "out_shardings" in options:
        return None
    options.pop("donate_argnums", None)  # counts leaves; parameters are needed here
    if compiling := compiler_options(call.function):
        options["compiler_options"] = value(compiling)
    declared = told(call.function)
    parameters = list(inspect.signature(call.function).parameters.values())
    is_variadic = any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters)
    if is_variadic and declared.by_position:
        return None
    static = declared.static.union(argument.parameter for argument in call.fixed)
    chosen = _chosen("static", static, parameters) | _chosen("donate", declared.donated, parameters)
    return opened(equation.params["jaxpr"]), chosen | options


def only_call(program: Program) -> Equation | None:
    """Return the call of a jitted function that is the whole program, or None."""
    equations = live(program.jaxpr.outvars, program.jaxpr.eqns)
    if len(equations) != 1 or equations[0].primitive.name not in ("jit", "pjit"):
        return None
    (equation,) = equations
    is_whole = _same(equation.invars, program.jaxpr.invars) and _same(
        equation.outvars, program.jaxpr.outvars
    )
    return equation if is_whole else None


def _chosen(
    prefix: str, chosen: Container[str], parameters: Sequence[inspect.Parameter]
) -> dict[str, ast.expr]:
    """Return the names of parameters, or the positions of those without a keyword name."""
    unnamed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    options: dict[str, list[object]] = defaultdict(list)
    for position, parameter in enumerate(parameters):
        if parameter.name in chosen and parameter.kind in unnamed:
            options[f"{prefix}_argnums"].append(position)
        elif parameter.name in chosen:
            options[f"{prefix}_argnames"].append(parameter.name)
    return {
        option: value(given[0] if len(given) == 1 else tuple(given))
        for option, given in options.items()
    }


def _same(first: Sequence[object], second: Sequence[object]) -> bool:
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
