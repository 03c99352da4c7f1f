"""Keep what functions are called with, as abstract arrays and objects that hold no tracer."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

import jax
import numpy as np

from jaxsight.meshes.compat import shardings
from jaxsight.recording.expressions import is_bound
from jaxsight.text import unknown_sizes
from jaxsight.tracer.calls.leaves import is_array, is_equinox, spread_like
from jaxsight.tracer.calls.parameters import signed
from jaxsight.tracer.calls.user_function import UserFunction, as_called, opened
from jaxsight.tracer.compat.eager_programs import Compiled
from jaxsight.tracer.dry_runs.values.united import Value
from jaxsight.tracer.dry_runs.values.unknown import has_unknown, is_unknown
from jaxsight.tracer.isolation.object_snapshot import contents_of
from jaxsight.tracer.states import inside, nnx
from jaxsight_source.compat import avals
from jaxsight_source.jaxprs.contents import cell_contents

Conditions = tuple[tuple[str, str, int], ...]
"""Texts of conditions, each with its file and line."""
_LARGEST = 20_000
"""Objects that are searched for tracers; what leads to more counts as unknown."""
_TAKES_INPUTS = frozenset({"init", "apply", "init_with_output"})
"""Methods of Linen's modules that take keys or variables, and then inputs."""
_CAPTURED = "captured"
"""The argument with the arrays that a nested function captures."""
_HARMLESS = (
    type(None), bool, int, float, complex, str, bytes, type, types.ModuleType, np.dtype, np.ufunc,
    types.BuiltinFunctionType, jax.ShapeDtypeStruct, range, slice, types.CodeType, np.ndarray,
    np.generic,
)  # fmt: skip


class HoldsTracersError(Exception):
    """An object may hold arrays of the dry run, and has no form without them."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A value without the dry run's arrays, from which equal ones can be made."""

    leaves: tuple[object, ...]
    structure: nnx.NodeTree

    def value(self) -> object:
        """Return the value, with abstract arrays."""
        return self.structure.unflatten(self.leaves)

    @property
    def is_sized(self) -> bool:
        """Whether arrays or numbers in it follow from sizes that are unknown."""
        leaves = jax.tree_util.tree_leaves(self.leaves)
        sizes = ([leaf] if isinstance(leaf, int) else getattr(leaf, "shape", ()) for leaf in leaves)
        return any(unknown_sizes.formula(number) for each in sizes for number in each)


def captured(value: object) -> Captured:
    """Return a value to be kept after the dry run.

    Raises:
        HoldsTracersError: that is not possible.
    """
    if is_bound(value):
        value = inside.unbound(value)
    leaves, structure = nnx.flatten(value)
    kept = tuple(map(_kept, leaves))
    if any(map(holds_tracers, (*kept, structure.pure))):
        raise HoldsTracersError
    return Captured(kept, structure)


def _kept(leaf: object) -> object:
    if is_array(leaf):
        return _abstract(leaf)
    function = _plain_function(leaf)
    if function is None or not holds_tracers(leaf):
        return leaf
    closure = closed(function)
    return ClosureInput(closure, closure.captured())


def _abstract(leaf: object) -> object:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    aval = avals.of(leaf)
    if not isinstance(aval, jax.core.ShapedArray) or not all(
        isinstance(size, int) for size in aval.shape
    ):
        raise HoldsTracersError
    made = spread_like(avals.struct(aval.shape, aval.dtype, avals.weak(aval)), leaf)
    return shardings.explicit_like(made, aval)


def holds_tracers(value: object) -> bool:
    """Return whether an object may hold a tracer, or something unknown, wherever in it."""
    seen: set[int] = set()
    queue: list[object] = [value]
    while queue:
        each = queue.pop()
        if isinstance(each, jax.core.Tracer) or is_unknown(each):
            return True
        if isinstance(each, _HARMLESS) or id(each) in seen:
            continue
        seen.add(id(each))
        if len(seen) > _LARGEST:
            return True
        queue.extend(_parts(each))
    return False


def _parts(value: Value) -> Iterable[object]:
    """Return the objects that an object refers to, without its class."""
    if isinstance(value, jax.tree_util.PyTreeDef):
        node = value.node_data()
        return [*value.children(), *([node[1]] if node is not None else [])]
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, types.FunctionType) and not isinstance(
        value, types.FunctionType | types.MethodType | functools.partial
    ):
        return [wrapped]  # of `jax.jit` and others, which have no parts in Python
    return contents_of(value)


@dataclass(slots=True)
class NotedCall:
    """A call of a function: its arguments by parameter, `*args` and `**kwargs` with stars."""

    arguments: dict[str, Captured]
    unknown: tuple[str, ...]
    file: str
    """Where it was called: the name of a code's file, and the line in it."""
    line: int
    function: object = None
    """A nested function, as it was defined."""
    decorated: object = None
    """The nested function under its decorators, if it has any."""
    closure: OpenClosure | None = None
    """The nested function, if it captures arrays."""
    compiled: Compiled = ""
    """What it is to the programs that XLA gets."""
    conditions: Conditions = ()
    """The unknown conditions under which it happens, outermost first."""
    definition: str = ""
    """The chunk that defines the function: a file may define a name again."""

    def keep(self, function: types.FunctionType) -> bool:
        """Keep the nested function; return whether it can be traced later."""
        self.function = function
        if holds_tracers(function):
            try:
                self.closure = closed(function)
            except Exception:  # noqa: BLE001 - user code, or an object that may hold tracers
                return False
        return True

    def values(self) -> dict[str, object]:
        """Return the known arguments by parameter, without stars, with abstract arrays."""
        return {name.lstrip("*"): kept.value() for name, kept in self.arguments.items()}

    @property
    def sized(self) -> tuple[str, ...]:
        """The parameters with arrays or numbers that follow from unknown sizes."""
        names = [name for name, kept in self.arguments.items() if kept.is_sized]
        cells = self.closure.cells.values() if self.closure is not None else ()
        if any(isinstance(kept, Captured) and kept.is_sized for kept in cells):
            names.insert(0, _CAPTURED)
        return tuple(names)

    @property
    def elements(self) -> int:
        """The number of elements of the arrays among the arguments."""
        leaves = (leaf for kept in self.arguments.values() for leaf in kept.leaves)
        return sum(int(leaf.size) for leaf in leaves if isinstance(leaf, jax.ShapeDtypeStruct))

    @property
    def types(self) -> str:
        """A text that equal calls share."""
        named = self.arguments.items()
        parts = ((n, str(v.structure.pure), [*map(_type_of, v.leaves)]) for n, v in named)
        return repr((*parts, self.unknown))


def _type_of(leaf: object) -> object:
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf.shape, str(leaf.dtype)
    return leaf if isinstance(leaf, bool | int | float | str) else type(leaf).__qualname__


def call_of(
    values: Mapping[str, object],
    tainted: Mapping[int, object],
    file: str,
    line: int,
) -> NotedCall:
    """Return a call with these arguments.

    Args:
        values: the arguments by parameter.
        tainted: objects that a failed statement may have changed, by their ids.
        file: the name of the file of the code that calls.
        line: its line.
    """
    arguments: dict[str, Captured] = {}
    unknown: list[str] = []
    for name, value in values.items():
        if has_unknown(value) or id(value) in tainted:
            unknown.append(name)
            continue
        try:
            arguments[name] = captured(value)
        except Exception:  # noqa: BLE001 - user code, or an object that may hold tracers
            unknown.append(name)
    return NotedCall(arguments, tuple(unknown), file, line)


def function_of(frame: types.FrameType) -> types.FunctionType:
    """Return the function that begins to run in a frame, without its defaults."""
    code, names = frame.f_code, frame.f_locals
    # An empty cell for a variable that is not bound yet.
    cells = (types.CellType(*([names[n]] if n in names else ())) for n in code.co_freevars)
    made = types.FunctionType(code, frame.f_globals, code.co_name, None, tuple(cells))
    made.__qualname__ = code.co_qualname
    return made


def closed(function: types.FunctionType) -> OpenClosure:
    """Return a function with what it captures, to be called later.

    Raises:
        HoldsTracersError: it captures something that has no form without the dry run's arrays.
    """
    cells: dict[str, Captured | OpenClosure | object] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        content = cell_contents(cell)
        inner = _plain_function(content)
        if not holds_tracers(content):
            cells[name] = content
        elif inner is not None:
            # A function that calls itself captures itself.
            cells[name] = closed(inner) if inner is not function else None
        else:
            cells[name] = captured(content)
    # Without what it captures, so that no array of the dry run stays.
    return OpenClosure(_with_empty_cells(function), cells)


def _plain_function(value: object) -> types.FunctionType | None:
    """Return a function with its arguments, or under `jit`, as one that captures them."""
    match value:
        case types.FunctionType():
            return value
        case types.MethodType():
            return _called_with(value.__func__, (value.__self__,), {})
        case functools.partial():
            return _called_with(value.func, value.args, value.keywords)
        case _:
            inner = getattr(value, "__wrapped__", None)
            return inner if isinstance(inner, types.FunctionType) else None


def _called_with(
    function: Callable[..., object], first: tuple[object, ...], named: dict[str, object]
) -> types.FunctionType:
    def call(*args: object, **kwargs: object) -> object:
        return function(*first, *args, **{**named, **kwargs})

    call.__name__ = getattr(function, "__name__", call.__name__)
    return cast("types.FunctionType", call)


def _with_empty_cells(function: types.FunctionType) -> types.FunctionType:
    """Return a function that captures nothing yet."""
    code, names, name = function.__code__, function.__globals__, function.__name__
    cells = tuple(types.CellType() for _ in code.co_freevars)
    made = types.FunctionType(code, names, name, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


@dataclass(frozen=True, eq=False, slots=True)
class OpenClosure:
    """A nested function without what it captures, and that: what its free variables contain."""

    function: types.FunctionType
    cells: Mapping[str, object]

    def captured(self) -> dict[str, object]:
        """Return the captured values with arrays, by variable."""
        held: dict[str, object] = {}
        for name, kept in self.cells.items():
            if isinstance(kept, Captured):
                held[name] = kept.value()
            elif isinstance(kept, OpenClosure) and (inner := kept.captured()):
                held[name] = inner
        return held

    def with_values(self, values: Mapping[str, object]) -> types.FunctionType:
        """Return the function with these captured values."""
        made = _with_empty_cells(self.function)
        for cell, (name, kept) in zip(made.__closure__ or (), self.cells.items(), strict=True):
            if isinstance(kept, OpenClosure):
                inner = values.get(name, {})
                assert isinstance(inner, Mapping)
                cell.cell_contents = kept.with_values(inner)
            else:
                cell.cell_contents = values[name] if isinstance(kept, Captured) else kept
        return made


@jax.tree_util.register_pytree_with_keys_class
class ClosureInput:
    """A function that is an argument and captures arrays: these are the leaves of the argument."""

    def __init__(self, closure: OpenClosure, values: Mapping[str, object]) -> None:
        self._closure, self._values = closure, values
        self.__name__ = closure.function.__name__

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self._closure.with_values(self._values)(*args, **kwargs)

    def tree_flatten_with_keys(self) -> tuple[list[tuple[object, object]], object]:
        named = [(jax.tree_util.GetAttrKey(name), value) for name, value in self._values.items()]
        return named, (self._closure, tuple(self._values))

    @classmethod
    def tree_unflatten(
        cls, kept: tuple[OpenClosure, tuple[str, ...]], values: Iterable[object]
    ) -> ClosureInput:
        closure, names = kept
        return cls(closure, dict(zip(names, values, strict=True)))


def nested(call: NotedCall) -> tuple[UserFunction, dict[str, object]]:
    """Return a nested function as it can be traced after the dry run, and its known arguments.

    If it captures arrays, these become its first argument.
    """
    function: Value = call.function
    closure = call.closure
    if closure is None:
        decorated = call.decorated if call.decorated is not None else function
        return as_called(opened(decorated)), call.values()

    def run(captured: Mapping[str, object], *args: object, **kwargs: object) -> object:
        return closure.with_values(captured)(*args, **kwargs)

    first = inspect.Parameter(_CAPTURED, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = {_CAPTURED: closure.captured(), **call.values()}
    return UserFunction(signed(run, function, first)), given


def fed_to(function: object, args: tuple[object, ...]) -> Iterator[str]:
    """Yield the types of the arrays that a model of Flax or Equinox is called with."""
    if isinstance(function, types.MethodType):
        is_model = function.__name__ in _TAKES_INPUTS and inside.is_linen(function.__self__)
        # Without the key or the variables, which come first.
        args = args[1:]
    else:
        is_model = callable(function) and (nnx.is_node(function) or is_equinox(function))
    if not is_model:
        return
    for leaf in jax.tree_util.tree_leaves(args):
        text = avals.text(avals.of(leaf)) if is_array(leaf) and leaf.shape else ""
        if text and not text.startswith("key<"):
            yield text


def signature(value: object, depth: int = 4) -> object:
    """Return a description of a value that differs if its types, shapes or upper structure do."""
    match value:
        case jax.Array() | jax.core.Tracer() | np.ndarray() | np.generic():
            return tuple(value.shape), str(value.dtype)
        case None | bool() | int() | float() | complex() | str() | bytes():
            return value
        case dict():
            items = value.items() if depth else ()
            return dict, len(value), tuple((repr(k), signature(v, depth - 1)) for k, v in items)
        case list() | tuple():
            parts = value if depth else ()
            return type(value), len(value), tuple(signature(v, depth - 1) for v in parts)
        case _ if depth and type(value).__module__ != "builtins":
            contents = getattr(value, "__dict__", None)
            inside = signature(dict(contents), depth - 1) if isinstance(contents, dict) else ()
            return type(value), inside
        case _:
            return type(value)
