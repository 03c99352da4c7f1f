"""Stand-ins for what is not there: modules that no import finds, and data that was not loaded.

A placeholder may be passed around: its attributes and items are placeholders, and it can be used in
annotations, as a base class and as a decorator. An operation that needs its value raises one error,
which says what is missing. So no answer depends on a placeholder silently, not even if the error is
caught: `uses` has what raised.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any, NoReturn, cast

from jaxsight.tracer.failures import position
from jaxsight.tracer.isolation import code_origins, refusals

on_call: Callable[[tuple[object, ...], dict[str, object]], None] | None = None
"""If set, called with the arguments of what is missing."""
unknown: Callable[[], object] | None = None
"""If set, makes what operations with something missing are done with instead of failing."""
uses: dict[str, None] = {}
"""What was needed and is missing, in clauses; whoever reads it clears it first."""


@dataclass(frozen=True, slots=True)
class Absence:
    """Something that is missing; `name` is a module or a file, and `reason` is a clause."""

    name: str
    reason: str
    raises: type[Exception]

    def error(self) -> Exception:
        """Return the error of whoever needs it."""
        uses[self.reason] = None
        error = self.raises(self.reason)
        error.absence = self  # type: ignore[attr-defined]
        return error


def missing_module(error: ImportError, absolute: str, frame: FrameType) -> MissingObject | None:
    """Return the placeholder of a module that an import statement has not found.

    Args:
        error: the import's error.
        absolute: the name of the module.
        frame: that of the statement.

    Returns:
        `None` if the error is about something else, or if code of the user handles it.
    """
    top = absolute.partition(".")[0]
    # Otherwise it was found, and something that it imports is missing.
    if type(error) is not ModuleNotFoundError or error.name != top or top in sys.modules:
        return None
    return None if _handles_import_errors(frame) else MissingObject(_not_installed(top))


def absence_of(error: BaseException) -> Absence | None:
    """Return what is missing, if an error is about that: a module, a file, the network."""
    known = getattr(error, "absence", None)
    if isinstance(known, Absence):
        return known
    match error:
        case ModuleNotFoundError(name=str(name)) if "." not in name and name not in sys.modules:
            return _not_installed(name)
        case FileNotFoundError(filename=str(name)):
            return Absence(name, f"`{name}` does not exist", FileNotFoundError)
        case FileNotFoundError():
            return Absence("", _clause(error), FileNotFoundError)
        case KeyError() if _is_of_environment(error):
            return Absence("", f"the environment has no {error}".replace("'", "`"), KeyError)
        case OSError() if isinstance(error, ConnectionError | TimeoutError) or (
            type(error).__name__ in _NETWORK_ERRORS
        ):
            reason = f"data was not loaded: {_clause(error)}"[:_LONGEST]
            return Absence("", reason, ConnectionError)
    return None


def _is_of_environment(error: KeyError) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    # The error does not have the mapping: the frame that raised it says which it is.
    return bool(frames) and frames[-1].f_code is type(os.environ).__getitem__.__code__


_LONGEST = 100  # characters of a caveat, as of a message
_NETWORK_ERRORS = frozenset({"URLError", "gaierror", "ConnectionError"})


def refused(effect: str) -> MissingObject:
    """Return the placeholder of what a statement would have made that was refused an effect."""
    absence = Absence("", f"{refusals.PREFIX}{effect}", refusals.RefusedError)
    return MissingObject(absence, is_module=False)


def _not_installed(name: str) -> Absence:
    return Absence(name, f"`{name}` is not installed", ModuleNotFoundError)


def _clause(error: BaseException) -> str:
    return " ".join(str(error).split()).replace("`", "'")[:_LONGEST].rstrip(".")


class MissingObject:
    """An object of which only its absence is known."""

    __slots__ = ("_absence", "_decorated", "_is_module", "_path")

    def __init__(
        self,
        absence: Absence,
        decorated: object = None,
        is_module: bool = True,
        path: tuple[str, ...] = (),
    ) -> None:
        # By `object`, as setting an attribute of a placeholder raises.
        values = absence, decorated, is_module, path
        for slot, value in zip(MissingObject.__slots__, values, strict=True):
            object.__setattr__(self, slot, value)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__" and self._decorated is not None:
            return self._decorated
        if name == "__jax_array__":
            raise self._absence.error()
        private = name.startswith("_") and not (self._is_module and not name.startswith("__"))
        if private and name != "__version__":
            raise AttributeError(name)
        if name in _OF_ARRAYS and not self._is_module:
            raise self._absence.error()
        return MissingObject(self._absence, is_module=False, path=(*self._path, name))

    def __getitem__(self, key: object) -> MissingObject:
        return MissingObject(self._absence, is_module=False)

    __or__ = __ror__ = __getitem__

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        plain = all(isinstance(base, MissingObject) or type(base) is type for base in bases)
        # Python refuses two metaclasses of which neither derives from the other.
        kind = _MissingClass if plain else type
        absence = self._absence

        def refuse(cls: type, *args: object, **kwargs: object) -> NoReturn:
            raise absence.error()

        def accept(cls: type, **kwargs: object) -> None:
            pass

        members = {"__new__": refuse, "__init_subclass__": classmethod(cast("Any", accept))}
        return (kind("Missing", (), {**members, "_missing": absence}),)

    def __call__(self, *args: object, **kwargs: object) -> MissingObject:
        """Return a placeholder where a decorator is called; any other call needs the object."""
        if not _decorates(sys._getframe(1)):
            if on_call is not None:
                on_call(args, kwargs)
            raise self._absence.error()
        function = args[0] if len(args) == 1 and not kwargs else None
        decorated = function if callable(function) else None
        return MissingObject(self._absence, decorated, is_module=False)

    def __eq__(self, other: object) -> bool:
        """Need the value, unless Python's own library compares objects, as `inspect` does."""
        asking = sys._getframe(1).f_code.co_filename
        if code_origins.of_file(asking) != code_origins.PYTHON:
            raise self._absence.error()
        return self is other

    def __repr__(self) -> str:
        return f"<{self._absence.reason}>"

    # Defining `__eq__` has removed it.
    __hash__ = object.__hash__


class _MissingClass(type):
    """The class of a class that derives from a missing one."""

    _missing: Absence

    def __getattr__(cls, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        raise cls._missing.error()


def name_of(value: object) -> tuple[str, ...]:
    """Return the parts of the name of a function's module, and its own, empty if it has none."""
    if isinstance(value, MissingObject):
        return (value._absence.name, *value._path)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    modules = str(module or type(value).__module__).split(".")
    return (*modules, name if isinstance(name, str) else "")


def of(value: object) -> Absence | None:
    """Return what is missing, if a value stands for that."""
    return value._absence if isinstance(value, MissingObject) else None


def stand_in(bindings: Mapping[str, object], reason: str) -> bool:
    """Return whether one of these names is bound to a placeholder of what is missing."""
    return any(
        isinstance(value, MissingObject) and value._absence.reason == reason
        for value in bindings.values()
    )


def opened(value: object) -> object:
    """Return the function that a missing decorator was given; any other value itself."""
    while isinstance(value, MissingObject) and value._decorated is not None:
        # Noted, as the decorator may change what the function does.
        uses[value._absence.reason] = None
        value = value._decorated
    return value


def may_change(text: str, names: Mapping[str, object]) -> bool:
    """Return whether a statement that needs something missing may change objects of the module.

    It may if it hands one on, or calls a module for nothing but its effects. What it assigns to
    names is not meant, nor are effects of what is missing itself.
    """
    return any(_changes_by_name(statement, names) for statement in tree(text).body)


def containers_changed(text: str, names: Mapping[str, object]) -> list[str]:
    """Return the names of containers that a statement may add items to, or take them from."""
    roots: list[ast.expr] = []
    for node in ast.walk(tree(text)):
        match node:
            case (
                ast.Call(func=ast.Attribute(value=root))
                | ast.Subscript(value=root, ctx=ast.Store() | ast.Del())
            ):
                roots.append(root)
            case ast.AugAssign(target=root):
                roots.append(root)
    changed = [root.id for root in roots if isinstance(root, ast.Name)]
    return [n for n in changed if isinstance(names.get(n), list | dict | set | bytearray)]


def _changes_by_name(statement: ast.stmt, names: Mapping[str, object]) -> bool:
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return False
        case ast.ClassDef():
            return False
        case ast.Assign(targets=targets):
            return not all(map(_is_of_names, targets))
        case ast.AnnAssign(target=target):
            return not _is_of_names(target)
        case ast.Expr(value=ast.Call(func=called)) if _root(called, names) is ModuleType:
            return True
    read = (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
    return any(_is_mutable(names[name]) for name in read if name in names)


def _is_mutable(value: object) -> bool:
    if isinstance(value, _UNCHANGED):
        return False
    return type(value).__module__.partition(".")[0] not in ("jax", "jaxlib")


def _root(called: ast.expr, names: Mapping[str, object]) -> type:
    while isinstance(called, ast.Attribute | ast.Call | ast.Subscript):
        called = called.func if isinstance(called, ast.Call) else called.value
    return type(names.get(called.id)) if isinstance(called, ast.Name) else type(None)


def _is_of_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_of_names, target.elts))
    return isinstance(target.value if isinstance(target, ast.Starred) else target, ast.Name)


_UNCHANGED = (
    *(bool, int, float, complex, str, bytes, type(None), range, PurePath, MissingObject, type),
    *(FunctionType, BuiltinFunctionType, ModuleType),
)
"""Classes of objects that a call does not change."""

_OF_ARRAYS = frozenset({"shape", "dtype", "ndim", "aval", "weak_type", "sharding"})
"""Attributes that JAX and NumPy read of a value instead of failing."""

_NEEDING = """
    bool int float complex index str format bytes fspath len iter next reversed contains
    lt le gt ge neg pos abs invert add sub mul matmul truediv floordiv mod divmod pow
    lshift rshift and xor radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift
    rrshift rand rxor iadd isub imul imatmul itruediv ifloordiv imod ipow iand ior ixor
    setattr delattr setitem delitem enter exit aenter aexit await aiter anext
    instancecheck subclasscheck array
"""
"""Special methods that need the object's value."""


def _refusal(name: str) -> Callable[..., object]:
    def refuse(self: MissingObject, *args: object, **kwargs: object) -> object:
        if unknown is not None and (operate := getattr(unknown(), name, None)) is not None:
            return operate(*args, **kwargs)
        raise self._absence.error()

    return refuse


for _name in _NEEDING.split():
    setattr(MissingObject, f"__{_name}__", _refusal(f"__{_name}__"))


# Read the text around a running statement: whether it handles errors, or calls a decorator.

_TREES_KEPT = 64  # of files whose imports fail: others are parsed again
_ABOVE = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
"""Classes whose handlers handle a missing module."""
_OTHERS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException) and name not in _ABOVE
)


def _handles_import_errors(frame: FrameType | None) -> bool:
    """Return whether code of the user, at a frame or its callers, handles a missing module."""
    return any(
        _handles(node, each.f_lineno)
        for each in code_origins.outwards(frame)
        if code_origins.of_file(each.f_code.co_filename) == code_origins.USER
        for node in ast.walk(_tree_of(each))
    )


def _handles(node: ast.AST, line: int) -> bool:
    match node:
        case ast.Try() | ast.TryStar() if _within(node.body, line):
            return any(
                handler.type is None or _may_match(handler.type) for handler in node.handlers
            )
        case ast.With() | ast.AsyncWith() if _within(node.body, line):
            # For example `with contextlib.suppress(ImportError):`.
            texts = [ast.dump(item.context_expr) for item in node.items]
            return any(f"'{name}'" in text for text in texts for name in _ABOVE)
    return False


def _within(body: list[ast.stmt], line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or line)


def _may_match(expression: ast.expr) -> bool:
    """Return whether a handler's classes may include that of a missing module."""
    if isinstance(expression, ast.Tuple):
        return any(map(_may_match, expression.elts))
    # Any other name may stand for a class that includes it.
    return not (isinstance(expression, ast.Name) and expression.id in _OTHERS)


def _decorates(frame: FrameType) -> bool:
    """Return whether the call that runs in a frame is one of a decorator."""
    line, _, column, _ = position(frame.f_code, frame.f_lasti)
    return any(
        (at.lineno, at.col_offset) <= (line, column) < (at.end_lineno or 0, at.end_col_offset or 0)
        for node in ast.walk(_tree_of(frame))
        for at in getattr(node, "decorator_list", ())
    )


def _tree_of(frame: FrameType) -> ast.AST:
    file = frame.f_code.co_filename
    loader: object = frame.f_globals.get("__loader__")
    lines = linecache.getlines(file)
    text = "".join(lines)
    # The loader has the editor's text, which runs; `linecache` reads the disk.
    if "§" not in file and hasattr(loader, "get_source"):
        with contextlib.suppress(ImportError, OSError, KeyError):
            text = loader.get_source(frame.f_globals["__name__"]) or text
    return tree(text)


@functools.lru_cache(maxsize=_TREES_KEPT)
def tree(text: str) -> ast.Module:
    """Return the tree of a text; that of an empty one if it is not Python."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])
