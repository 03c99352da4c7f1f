"""What a call was made with, and how the objects in it were built; needs JAX."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

import jax
import numpy as np

from jaxsight.recording.expressions import Built, Expressions, Reachable, WrittenCall, write_call
from jaxsight.recording.notation import UnwritableError
from jaxsight.text.parsing import alone
from jaxsight_source.compat.staging import is_tracing

# Tell calls apart cheaply: equal fingerprints are written alike, but for numbers of Python.
#
# Nothing here runs code of the user's classes.

DEEPEST = 30  # as of an example (`notation.py`)
_HOLDERS = ("flax.nnx.",)
"""Modules of libraries whose objects hold arrays, and are no dataclasses."""
MOST = 20_000
"""Maximum number of parts of an argument that are looked at: larger ones are not written, and a
program would wait for them at each call."""


class Fingerprints:
    """The fingerprints of the arguments of one call.

    `arrays`, `numpy_arrays` and `is_traced` say what they hold.
    """

    def __init__(self) -> None:
        self.arrays = 0
        self.numpy_arrays = 0
        self.is_traced = False
        self._parts = 0
        self._within: set[int] = set()

    def of(self, value: Any, depth: int = 0) -> object:
        """Return the fingerprint of an argument, which is hashable."""
        self._parts += 1
        kind = type(value)
        if depth > DEEPEST or self._parts > MOST:
            return kind
        if isinstance(value, jax.core.Tracer | jax.ShapeDtypeStruct):
            self.arrays += 1
            self.is_traced |= isinstance(value, jax.core.Tracer)
            return jax.typeof(value)
        if isinstance(value, jax.Array):
            self.arrays += 1
            return jax.typeof(value), value.sharding
        if isinstance(value, np.ndarray | np.generic):
            self.numpy_arrays += 1
            return value.dtype, value.shape
        if kind in (bool, str, type(None)):
            return kind, value
        if kind is dict:
            return dict, tuple((_key(key), self.of(part, depth + 1)) for key, part in value.items())
        if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return kind, tuple(self.of(part, depth + 1) for part in value)
        if dataclasses.is_dataclass(kind):
            own = getattr(value, "__dict__", {})
            return kind, tuple(self.of(part, depth + 1) for part in tuple(own.values()))
        if (held := self._held(value)) is not None:
            return kind, tuple(self.of(part, depth + 1) for part in held)
        if isinstance(value, type) or callable(value):
            return kind, id(value)
        return kind

    def _held(self, value: object) -> tuple[object, ...] | None:
        """Return the attributes of a module or variable of a library, once for each."""
        if not any(base.__module__.startswith(_HOLDERS) for base in type(value).__mro__):
            return None
        if id(value) in self._within:
            return ()
        self._within.add(id(value))
        own = getattr(value, "__dict__", {})
        held = tuple(own.values()) if type(own) is dict else ()
        if any(base.__name__ == "Variable" for base in type(value).__mro__):
            held = (getattr(value, "raw_value", None), *held)
        return held


def _key(key: object) -> Hashable:
    return key if type(key) in (str, int, bool, tuple) else type(key)


_LIBRARY = "flax.nnx."
_MOST_MADE = 200
"""Maximum number of functions that functions made, with arguments that are kept: kept objects stay
alive, and calls with others are not written."""
_MOST_OBJECTS = 1000
"""Maximum number of objects whose constructor calls are kept, for the same reason."""

Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class CallKind:
    """What tells calls of a function apart."""

    parts: Hashable
    is_traced: bool
    """Whether JAX traces the call."""


@dataclass(frozen=True, slots=True)
class _Construction:
    """The arguments of a constructor call as text, and the module whose names they read."""

    arguments: str
    reads: tuple[str, ...] = field(compare=False)
    namespace: Mapping[str, object] = field(compare=False)

    def text_in(self, names: Reachable, kind: type, built: Built) -> str | None:
        """Return the call for a module; `None` if there its names are not those of the same."""
        name, there = names.name_of(kind), names.namespace
        is_same = all(there.get(read) is self.namespace.get(read) for read in self.reads)
        return f"{name}({self.arguments})" if name is not None and is_same else None


@dataclass(frozen=True, slots=True, eq=False)
class _Made:
    """What made an object, a function or a class, and the arguments, which are kept alive."""

    value: object
    maker: object
    arguments: Named

    def text_in(self, names: Reachable, kind: type, built: Built) -> str | None:
        """Return the call for a module; `None` if that has no names for its parts."""
        if (name := names.name_of(self.maker)) is None:
            return None
        expressions = Expressions(names, built)
        try:
            return f"{name}({_passed(self.arguments, expressions)})"
        except UnwritableError:
            return None


def _passed(arguments: Named, expressions: Expressions) -> str:
    """Return arguments as a call passes them; by position, if it passes any number of them."""
    parts: list[str] = []
    is_starred = any(name[0] == "*" != name[1] for name, _ in arguments)
    for name, value in arguments:
        if name.startswith("**") and isinstance(value, dict):
            parts += [f"{key}={expressions.write(part, key)}" for key, part in value.items()]
        elif name.startswith("*") and isinstance(value, tuple):
            parts += [expressions.write(part) for part in value]
        else:
            text = expressions.write(value, name)
            parts.append(text if is_starred else f"{name}={text}")
    return ", ".join(parts)


_Call = _Construction | _Made


class Calls:
    """The calls of one process."""

    def __init__(self) -> None:
        self.misses_objects = False
        """Whether objects have been built since without being seen."""
        self._made: dict[int, _Made] = {}
        self._objects: dict[int, tuple[Callable[[], object], _Call | None]] = {}
        self._classes: dict[tuple[str, str], set[_Call | None]] = {}

    def kind(self, arguments: Named, namespace: Mapping[str, object]) -> CallKind | None:
        """Return what tells a call apart; `None` if it is no call of a JAX function."""
        fingerprints = Fingerprints()
        parts = tuple((name, fingerprints.of(value)) for name, value in arguments)
        is_traced = fingerprints.is_traced or is_tracing()
        is_jax = fingerprints.arrays or is_traced
        if is_jax or (fingerprints.numpy_arrays and _uses_jax(namespace)):
            return CallKind(parts, is_traced)
        return None

    def written(self, arguments: Named, namespace: Mapping[str, object]) -> WrittenCall:
        """Return a call as text."""
        try:
            return write_call(arguments, namespace, self._built)
        except UnwritableError as error:
            return WrittenCall("", (("", str(error)),))

    def constructing(self, frame: FrameType, arguments: Named) -> None:
        """Note how an object is built that a frame begins to initialize."""
        (_, made), *rest = arguments
        if (known := self._objects.get(id(made))) is not None and known[0]() is made:
            return  # the constructor of a base class
        if len(self._objects) >= _MOST_OBJECTS:
            self.misses_objects = True
            return
        key = type(made).__module__, type(made).__qualname__
        try:
            passed = [pair for pair in rest if not _is_default(made, frame.f_code, *pair)]
            if any(name.startswith("*") and not isinstance(given, dict) for name, given in passed):
                raise UnwritableError("its constructor takes any number of arguments")
            text = _passed(passed, Expressions(Reachable(frame.f_globals), self._built))
            with alone():
                tree = ast.parse(f"f({text})", mode="eval")
            reads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"f"}
            construction: _Call | None = _Construction(text, tuple(sorted(reads)), frame.f_globals)
        except UnwritableError:
            # A library's module has no names for objects of the user's.
            construction = _Made(None, type(made), passed) if key[0].startswith(_LIBRARY) else None
        try:
            self._objects[id(made)] = weakref.ref(made), construction
        except TypeError:
            return  # its class has no room for weak references
        self._classes.setdefault(key, set()).add(construction)

    def returning(self, frame: FrameType, arguments: Named, value: object) -> bool:
        """Note how a function or a tuple of functions was made; return whether it was one."""
        is_made = (
            isinstance(value, tuple) and hasattr(value, "_fields") and all(map(callable, value))
        )
        if not (is_made or (callable(value) and not isinstance(value, type))):
            return False
        parts = (
            part
            for _, given in arguments
            for part in (given, *(given if type(given) is tuple else ()))
        )
        if any(part is value for part in parts):
            return True  # it was made before
        maker = frame.f_globals.get(frame.f_code.co_name)
        inner = inspect.unwrap(maker) if callable(maker) else None
        if getattr(inner, "__code__", None) is not frame.f_code or len(self._made) >= _MOST_MADE:
            return True
        assert callable(maker)
        parameters = inspect.signature(maker).parameters
        starred = frame.f_code.co_flags & inspect.CO_VARARGS
        passed = [
            (name, part)
            for name, part in arguments
            if starred or name not in parameters or parameters[name].default is not part
        ]
        fingerprints = Fingerprints()
        for _, part in passed:
            fingerprints.of(part)
        if not (fingerprints.arrays or fingerprints.numpy_arrays):
            self._made[id(value)] = _Made(value, maker, passed)
        return True

    def _built(self, value: object, names: Reachable) -> str | None:
        """Return the call that built an object.

        A copy of one that was built, as transformations of pytrees make them, counts as built
        by the only call of its class.
        """
        if (made := self._made.get(id(value))) is not None and made.value is value:
            return made.text_in(names, type(value), self._built)
        if (known := self._objects.get(id(value))) is not None and known[0]() is value:
            construction = known[1]
        else:
            own = self._classes.get((type(value).__module__, type(value).__qualname__), set())
            is_only = len(own) == 1 and not self.misses_objects
            construction = next(iter(own)) if is_only else None
        if construction is None:
            return None
        return construction.text_in(names, type(value), self._built)


def _is_default(made: object, code: CodeType, name: str, value: object) -> bool:
    """Return whether a constructor's argument is the default of its parameter."""
    constructor = inspect.unwrap(type(made).__init__)
    if getattr(constructor, "__code__", None) is not code:
        return False
    parameter = inspect.signature(constructor).parameters.get(name)
    return parameter is not None and parameter.default is value


def _uses_jax(namespace: Mapping[str, object]) -> bool:
    """Return whether a module has a name for JAX or something in it."""
    own = tuple(namespace.values())
    homes = (getattr(v, "__name__" if isinstance(v, ModuleType) else "__module__", "") for v in own)
    return any(isinstance(home, str) and home.partition(".")[0] == "jax" for home in homes)
