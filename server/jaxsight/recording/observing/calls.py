"""What a call was made with, and how the objects in it were built; needs JAX."""

from __future__ import annotations

import ast
import inspect
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any

from jaxsight.interpreters.compat import tracing
from jaxsight.recording.arguments import WrittenCall, write_call
from jaxsight.recording.expressions import Expressions
from jaxsight.recording.fingerprints import Fingerprints
from jaxsight.recording.notation import UnwritableError
from jaxsight.recording.reachable import Reachable

_MOST_OBJECTS = 1000
"""Maximum number of objects whose constructor calls are kept."""

Named = Sequence[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class Kind:
    """What tells calls of a function apart."""

    parts: Hashable
    is_traced: bool
    """Whether JAX traces the call."""


@dataclass(frozen=True, slots=True, eq=False)
class _Construction:
    """The arguments of a constructor call as text, and the module whose names they read."""

    arguments: str
    reads: tuple[str, ...]
    namespace: Mapping[str, object]

    def text_in(self, names: Reachable, kind: type) -> str | None:
        """Return the call for another module; `None` if that has no names for its parts."""
        name = names.name_of(kind)
        if name is None:
            return None
        renamed: dict[str, str] = {}
        for read in self.reads:
            own = self.namespace.get(read)
            if names.namespace.get(read) is own:
                continue
            if isinstance(own, ModuleType):
                there = names.module(own.__name__)
            else:
                there = names.name_of(own)
            if there is None:
                return None
            renamed[read] = there
        return f"{name}({_renamed(self.arguments, renamed)})"


class Calls:
    """The calls of one process."""

    def __init__(self) -> None:
        self.misses_objects = False
        """Whether objects have been built since without being seen."""
        self._objects: dict[int, tuple[Any, _Construction | None]] = {}
        self._classes: dict[tuple[str, str], set[_Construction | None]] = {}

    def kind(self, arguments: Named, namespace: Mapping[str, object]) -> Kind | None:
        """Return what tells a call apart; `None` if it is no call of a JAX function."""
        fingerprints = Fingerprints()
        parts = tuple((name, fingerprints.of(value)) for name, value in arguments)
        is_traced = fingerprints.is_traced or tracing.is_tracing()
        is_jax = fingerprints.arrays or is_traced
        if is_jax or (fingerprints.numpy_arrays and _uses_jax(namespace)):
            return Kind(parts, is_traced)
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
        known = self._objects.get(id(made))
        if known is not None and known[0]() is made:
            return  # the constructor of a base class
        if len(self._objects) >= _MOST_OBJECTS:
            self.misses_objects = True
            return
        key = type(made).__module__, type(made).__qualname__
        try:
            passed = [pair for pair in rest if not _is_default(made, frame.f_code, *pair)]
            construction: _Construction | None = self._construction(frame.f_globals, passed)
        except UnwritableError:
            construction = None
        try:
            self._objects[id(made)] = weakref.ref(made), construction
        except TypeError:
            return  # its class has no room for weak references
        own = self._classes.setdefault(key, set())
        if construction is None or not any(_same(construction, other) for other in own):
            own.add(construction)

    def _construction(self, namespace: Mapping[str, object], arguments: Named) -> _Construction:
        expressions = Expressions(Reachable(namespace), self._built)
        parts: list[str] = []
        for name, value in arguments:
            if name.startswith("**") and isinstance(value, dict):
                parts += [f"{key}={expressions.write(part, key)}" for key, part in value.items()]
            elif name.startswith("*"):
                raise UnwritableError("its constructor takes any number of arguments")
            else:
                parts.append(f"{name}={expressions.write(value, name)}")
        text = ", ".join(parts)
        tree = ast.parse(f"f({text})", mode="eval")
        reads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - {"f"}
        return _Construction(text, tuple(sorted(reads)), namespace)

    def _built(self, value: object, names: Reachable) -> str | None:
        """Return the call that built an object.

        A copy of one that was built, as transformations of pytrees make them, counts as built
        by the only call of its class.
        """
        known = self._objects.get(id(value))
        if known is not None and known[0]() is value:
            construction = known[1]
        else:
            own = self._classes.get((type(value).__module__, type(value).__qualname__), set())
            is_only = len(own) == 1 and not self.misses_objects
            construction = next(iter(own)) if is_only else None
        return construction.text_in(names, type(value)) if construction is not None else None


def _renamed(arguments: str, names: Mapping[str, str]) -> str:
    """Return arguments with other names for the parts that they read."""
    if not names:
        return arguments

    class Renamer(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            there = names.get(node.id)
            return node if there is None else ast.parse(there, mode="eval").body

    return ast.unparse(Renamer().visit(ast.parse(f"_({arguments})", mode="eval")))[2:-1]


def _is_default(made: object, code: CodeType, name: str, value: object) -> bool:
    """Return whether a constructor's argument is the default of its parameter."""
    constructor = inspect.unwrap(type(made).__init__)
    if getattr(constructor, "__code__", None) is not code:
        return False
    parameter = inspect.signature(constructor).parameters.get(name)
    return parameter is not None and parameter.default is value


def _same(one: _Construction, other: _Construction | None) -> bool:
    return other is not None and one.arguments == other.arguments


def _uses_jax(namespace: Mapping[str, object]) -> bool:
    """Return whether a module has a name for JAX or something in it."""
    for value in tuple(namespace.values()):
        if isinstance(value, ModuleType):
            home = value.__name__
        else:
            own: object = getattr(value, "__module__", None)
            home = own if isinstance(own, str) else ""
        if home.partition(".")[0] == "jax":
            return True
    return False
