"""Create the arguments of a call from its example inputs.

Arrays become abstract at once; `=` expressions are evaluated abstractly if possible, so that
`params = init(key)` of a large model uses no memory.
This must never initialize a backend unless an expression itself needs concrete values.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.interpreters.compat import avals
from jaxsight.tracer.compat import refs
from jaxsight.tracer.failures import UserError, failure, refusal
from jaxsight.tracer.function_lookup import Found
from jaxsight.tracer.states import nnx
from jaxsight.tracer.states.watch import Watch
from jaxsight.wire.messages.inputs import (
    Argument,
    ArraySpec,
    InputSpec,
    KeySpec,
    TreeSpec,
    ValueSpec,
)
from jaxsight.wire.messages.requests import Trace
from jaxsight.wire.observations import Warned

_EXPRESSION = "<example inputs>"

_REMEMBERED = 64
"""Maximum number of evaluated expressions in the cache."""

_USUAL = {"jax": jax, "jnp": jnp, "np": np}
"""Names that doctests use, whether they import them or not."""

_ITEM = re.compile(r"(?P<name>\w+)\[(?P<index>\d+)\]")


@dataclass(slots=True)
class Inputs:
    """The call's arguments: arrays are abstract, other values unchanged."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    named: dict[str, Any]
    """Arguments by parameter, for users."""
    warnings: list[Warned] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """An expression's value, and the objects behind its names, which validate the cache entry."""

    depends: dict[str, Any]
    leaves: tuple[Any, ...]
    structure: _Structure


@dataclass(frozen=True, slots=True)
class _Structure:
    """A pytree without its leaves; parts shared by its NNX objects stay shared."""

    pure: Any
    split: nnx.Split

    @property
    def num_leaves(self) -> int:
        return int(self.pure.num_leaves)

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        value, _ = self.split.merge(jax.tree_util.tree_unflatten(self.pure, leaves))
        return value


def _flatten(value: Any) -> tuple[list[Any], _Structure]:
    split = nnx.split(value)
    leaves, pure = jax.tree_util.tree_flatten(split.pure)
    return leaves, _Structure(pure, nnx.Split(None, split.outer, split.places, split.graph))


class Evaluator:
    """Evaluates example inputs with a cache of `=` expressions; there is one per process."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str, tuple[tuple[str, int], ...]], _Evaluated] = (
            OrderedDict()
        )

    def inputs(self, request: Trace, found: Found, namespace: Mapping[str, Any]) -> Inputs:
        """Return the arguments for `found`.

        Raises:
            UserError: the inputs are invalid; its stage is `inputs`, and it names the argument.
        """
        warned: list[Warned] = []
        if request.call is not None:
            args, kwargs = self._call(request.call, request, found, namespace)
            args = tuple(_varying(arg, found) for arg in args)
            kwargs = {name: _varying(arg, found) for name, arg in kwargs.items()}
            return Inputs(args, kwargs, named(found, args, kwargs), warned)
        values = {
            argument.name: self._value(argument, argument.spec, request, namespace, found, warned)
            for argument in request.arguments
        }
        args, kwargs = _bound(request.function, found, values)
        return Inputs(args, kwargs, named(found, args, kwargs), warned)

    def _value(
        self,
        argument: Argument,
        spec: InputSpec,
        request: Trace,
        namespace: Mapping[str, Any],
        found: Found,
        warned: list[Warned],
    ) -> Any:
        match spec:
            case ArraySpec():
                return _array(argument.name, spec, warned)
            case KeySpec():
                try:
                    return avals.key_struct(spec.impl, spec.shape)
                except ValueError as error:
                    raise UserError(failure(error, "inputs", argument.name)) from error
            case ValueSpec(source, True):
                return _literal(source, argument.name)
            case ValueSpec(source, False):
                value = self._evaluate(source, argument.name, request, namespace)
                return _varying(value, found)
            case TreeSpec(kind, children, keys):
                parts = [
                    self._value(argument, part, request, namespace, found, warned)
                    for part in children
                ]
                if kind == "dict":
                    names = [_literal(key, argument.name) for key in keys]
                    return dict(zip(names, parts, strict=True))
                return parts if kind == "list" else tuple(parts)

    def _call(
        self, call: str, request: Trace, found: Found, namespace: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a doctest's call, with the object of a method first."""
        try:
            tree = ast.parse(call.strip(), mode="eval").body
        except SyntaxError as error:
            raise UserError(failure(error, "inputs")) from error
        if not isinstance(tree, ast.Call):
            raise refusal("inputs", f"not a call: {call}")
        arguments = list(tree.args)
        if found.owner is not None and isinstance(tree.func, ast.Attribute):
            holder = ast.unparse(tree.func.value)
            if holder.split(".")[-1] != found.owner.__name__:
                arguments.insert(0, tree.func.value)
        positional = ast.Tuple(arguments, ast.Load())
        named = ast.Call(ast.Name("dict", ast.Load()), [], tree.keywords)
        source = ast.unparse(ast.Tuple([positional, named], ast.Load()))
        args, kwargs = self._evaluate(source, "", request, namespace)
        return tuple(args), dict(kwargs)

    def _evaluate(
        self, source: str, argument: str, request: Trace, namespace: Mapping[str, Any]
    ) -> Any:
        usual = _USUAL if request.call is not None else {}
        scope = {**usual, **namespace, **dict(request.sizes)}
        try:
            tree = ast.parse(source.strip(), _EXPRESSION, "eval")
            code = compile(tree, _EXPRESSION, "eval")
        except SyntaxError as error:
            raise UserError(failure(error, "inputs", argument)) from error
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        depends = {name: namespace[name] for name in names if name in namespace}
        key = (request.file, source, request.sizes)
        known = self._known.get(key)
        if known is not None and _same(known.depends, depends):
            self._known.move_to_end(key)
            return known.structure.unflatten(known.leaves)

        def run() -> Any:
            with Watch(
                None, depends
            ):  # changes of the module by this evaluation are not the function's
                return eval(code, scope)

        try:
            leaves, structure = _abstractly(run)
        except Exception:  # noqa: BLE001 - user code
            # An error counts only if it also occurs with concrete values.
            try:
                leaves, structure = _flatten(run())
            except Exception as error:
                raise UserError(failure(error, "inputs", argument)) from error
            leaves = [_abstract(leaf) for leaf in leaves]
            if not all(map(_is_harmless, leaves)):
                return structure.unflatten(leaves)
        self._known[key] = _Evaluated(depends, tuple(leaves), structure)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return structure.unflatten(leaves)


def _same(before: dict[str, Any], now: dict[str, Any]) -> bool:
    return before.keys() == now.keys() and all(before[name] is now[name] for name in now)


class _HoldsTracers(Exception):
    """The result of an abstract evaluation has an object that may hold tracers."""


def _abstractly(run: Callable[[], Any]) -> tuple[list[Any], _Structure]:
    """Return leaves and structure of the result of `run`, without computing an array."""
    kept: dict[int, Any] = {}
    structure: Any = None

    def arrays() -> list[Any]:
        nonlocal structure
        leaves, structure = _flatten(run())
        out = []
        for index, leaf in enumerate(leaves):
            if is_array(leaf):
                out.append(leaf)
            elif _is_harmless(leaf):
                kept[index] = leaf
            else:
                raise _HoldsTracers
        return out

    shapes = iter(jax.eval_shape(arrays))
    leaves = [
        kept[index] if index in kept else next(shapes) for index in range(structure.num_leaves)
    ]
    return leaves, structure


def _is_harmless(leaf: Any, depth: int = 0) -> bool:
    """Return whether a leaf that is not an array certainly holds no tracer."""
    if depth > 4:
        return False
    match leaf:
        case None | bool() | int() | float() | complex() | str() | bytes() | type() | ModuleType():
            return True
        case jax.ShapeDtypeStruct() | np.dtype() | BuiltinFunctionType() | np.ufunc():
            return True
        case MethodType():
            return _is_harmless(leaf.__func__, depth + 1) and _is_harmless(leaf.__self__, depth + 1)
        case FunctionType():
            cells = [cell for cell in leaf.__closure__ or () if _is_set(cell)]
            held = [*(cell.cell_contents for cell in cells), *(leaf.__defaults__ or ())]
            return all(_is_harmless(value, depth + 1) for value in held)
        case _:
            wrapped = getattr(leaf, "__wrapped__", None)
            return callable(wrapped) and type(leaf).__module__.startswith(("jax", "jaxlib"))


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def is_array(leaf: Any) -> bool:
    """Return whether a leaf of an argument is traced.

    That applies to arrays of JAX and NumPy, abstract arrays, tracers and references.
    """
    match leaf:
        case jax.Array() | jax.ShapeDtypeStruct() | jax.core.Tracer():
            return True
        case _ if refs.is_ref(leaf):
            return True
        case np.ndarray() | np.generic():
            return leaf.dtype != np.dtype(object) and leaf.dtype.kind not in "USMm"
        case _:
            return False


def is_number(leaf: Any) -> bool:
    """Return whether a leaf is a Python number, which `jax.jit` traces as a weakly typed scalar."""
    return type(leaf) in (bool, int, float, complex)


def abstract(leaf: Any) -> Any:
    """Return the shape, dtype and weak type of an array or number.

    Raises:
        OverflowError: no dtype can represent the number.
    """
    return jax.eval_shape(lambda value: value, leaf)


def _varying(value: Any, found: Found) -> Any:
    """Return an expression's value with its numbers abstract, like `jax.jit` traces them.

    A single number is unchanged, and so are tuples of integers (a shape, axes), the numbers of
    equinox modules, and all numbers for functions that a library's own `jit` traces.
    """
    if found.jitted or found.wrapper is not None or is_number(value) or _is_sizes(value):
        return value
    structure: Any
    leaves, structure = jax.tree_util.tree_flatten(value, is_leaf=_keeps_numbers)
    if not any(map(is_number, leaves)):
        return value
    try:
        return structure.unflatten([_varying_leaf(leaf) for leaf in leaves])
    except Exception:  # noqa: BLE001 - user code: a class may check its leaves
        return value


def _varying_leaf(leaf: Any) -> Any:
    if not is_number(leaf):
        return leaf
    try:
        return abstract(leaf)
    except OverflowError:
        return leaf


def _is_sizes(value: Any) -> bool:
    return type(value) is tuple and all(type(size) is int for size in value)


def _keeps_numbers(value: Any) -> bool:
    modules = sys.modules.get("equinox")
    module = getattr(modules, "Module", None)
    return nnx.is_node(value) or (module is not None and isinstance(value, module))


def _abstract(leaf: Any) -> Any:
    """Return an array's shape and dtype only."""
    if not is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct | jax.core.Tracer):
        return leaf
    aval = avals.of(leaf)
    if not isinstance(aval, jax.core.ShapedArray):
        return leaf
    return avals.struct(aval.shape, aval.dtype, avals.weak(aval))


def _array(name: str, spec: ArraySpec, warned: list[Warned]) -> Any:
    try:
        dtype = np.dtype(getattr(jnp, spec.dtype, spec.dtype))
    except TypeError as error:
        raise UserError(failure(error, "inputs", name)) from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = jax.dtypes.canonicalize_dtype(dtype)
    if given != dtype:
        wanted, became = (avals.array_text(kind, spec.shape) for kind in (dtype, given))
        text = f"example input {name}: {wanted} becomes {became}, as jax_enable_x64 is off"
        warned.append(Warned("UserWarning", text))
    return avals.struct(spec.shape, given, spec.weak)


def _literal(source: str, argument: str) -> Any:
    try:
        return ast.literal_eval(source.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise UserError(failure(error, "inputs", argument)) from error


def _signature(found: Found) -> inspect.Signature | None:
    try:
        return inspect.signature(found.call)
    except (TypeError, ValueError):
        return None


def _bound(
    function: str, found: Found, values: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a call with values by parameter: positional up to a gap, then by keyword."""
    signature = _signature(found)
    if signature is None:
        return tuple(values.values()), {}
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    left = dict(values)
    gap = False
    missing: list[str] = []
    rest: inspect.Parameter | None = None
    for parameter in signature.parameters.values():
        name = parameter.name
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                items = sorted(
                    (int(item["index"]), key)
                    for key in left
                    if (item := _ITEM.fullmatch(key)) is not None and item["name"] == name
                )
                if name in left:
                    args += left.pop(name)
                args += [left.pop(key) for _, key in items]
            case inspect.Parameter.VAR_KEYWORD:
                rest = parameter
            case kind if name in left:
                if kind == inspect.Parameter.KEYWORD_ONLY or gap:
                    kwargs[name] = left.pop(name)
                else:
                    args.append(left.pop(name))
            case kind:
                gap = gap or kind != inspect.Parameter.KEYWORD_ONLY
                if parameter.default is inspect.Parameter.empty:
                    missing.append(name)
    if rest is not None:
        kwargs |= left.pop(rest.name, {})
        kwargs |= left
        left = {}
    if left:
        name = next(iter(left))
        raise refusal("inputs", f"{function} has no parameter {name}", argument=name)
    if missing:
        names = ", ".join(missing)
        raise refusal("inputs", f"no example input for {names}", argument=missing[0])
    return tuple(args), kwargs


def named(found: Found, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments by parameter, including defaults."""
    signature = _signature(found)
    if signature is None:
        return {str(index): value for index, value in enumerate(args)}
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UserError(failure(error, "inputs")) from error
    bound.apply_defaults()
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        match signature.parameters[name].kind:
            case inspect.Parameter.VAR_POSITIONAL:
                named |= {f"{name}[{index}]": part for index, part in enumerate(value)}
            case inspect.Parameter.VAR_KEYWORD:
                named |= value
            case _:
                named[name] = value
    return named
