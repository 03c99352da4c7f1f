"""Find out whether running code reaches a loop that calls compiled functions: a training loop.

Calls are followed through the functions and classes of the module, with the values that they are
passed; what is not known is taken to be not compiled.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto

from jaxsight.source.analysis import library_functions
from jaxsight.source.slicing.loop_calls import (
    AttributeOf,
    Code,
    Defined,
    DefinedClass,
    ImportOf,
    NameOf,
    OneOf,
    ResultOf,
    Value,
)
from jaxsight.source.slicing.name_facts import NameFacts
from jaxsight.source.statements import TopLevelStatement

_DEEPEST = 12
"""Calls that are followed, one inside the other, a choice: deeper ones mostly recurse."""
_MOST = 2_000
"""Values that are looked at for a statement, a choice: programs need tens; with more, code that is
written to branch would block the event loop."""
_REPEATING = frozenset(
    {"map", "filter", "functools.reduce", "itertools.accumulate", "timeit.timeit", "timeit.repeat"}
)
"""Functions that call their arguments many times."""
_ASSIGNS = re.compile(r"(\w+\.\w+)\s*=(?!=)")
_STAGES = frozenset({"lower", "compile", "trace"})
"""Methods of a compiled function that lead to another one."""
_JAX = ("jax.", "flax.", "optax.", "equinox.")


@dataclass(frozen=True, slots=True)
class _Library:
    """An object of an installed package, or a builtin, by its full name."""

    name: str


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A function that is compiled when it is called."""


@dataclass(frozen=True, eq=False, slots=True)
class _Scope:
    """The names of code that runs, with the values of its parameters."""

    code: Code
    outer: _Scope | None = None
    arguments: Mapping[str, tuple[_Object, ...]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, slots=True)
class _Function:
    code: Code
    scope: _Scope | None
    owner: _Instance | None = None


@dataclass(frozen=True, eq=False, slots=True)
class _Class:
    code: Code
    bases: tuple[Value, ...]
    scope: _Scope | None


@dataclass(frozen=True, eq=False, slots=True)
class _Instance:
    of: _Class
    arguments: ResultOf
    scope: _Scope | None


_Object = _Library | _Compiled | _Function | _Class | _Instance


class _Reached(Flag):
    """What running code leads to."""

    COMPILED = auto()
    """A call of a compiled function."""
    LOOP = auto()
    """Such a call in a loop of many iterations."""

    def repeated(self, is_repeated: bool) -> _Reached:
        """Return what the same code leads to where it is repeated, if it is."""
        is_loop = is_repeated and _Reached.COMPILED in self
        return self | _Reached.LOOP if is_loop else self


class CompiledLoops:
    """Follows the calls of a module's statements; `analyzed` is told which ones it has read."""

    def __init__(self, facts: NameFacts, analyzed: dict[int, TopLevelStatement]) -> None:
        self._facts = facts
        self._analyzed = analyzed
        self._left = 0
        self._depth = 0
        self._active: set[int] = set()

    def reached(self, statement: TopLevelStatement) -> bool:
        """Return whether executing a statement reaches a loop that calls compiled functions."""
        self._left = _MOST
        self._depth = 0
        self._active = set()
        return _Reached.LOOP in self._running(statement.code, _Scope(statement.code))

    def _running(self, code: Code, scope: _Scope) -> _Reached:
        """Return what running code reaches."""
        reached = _Reached(0)
        if id(code) in self._active or self._depth > _DEEPEST:
            return reached
        self._active.add(id(code))
        self._depth += 1
        for repeated, group in ((False, code.calls), (True, code.repeated)):
            for call in group:
                reached |= self._calling(call, scope).repeated(repeated)
                if _Reached.LOOP in reached:
                    break
        self._depth -= 1
        self._active.discard(id(code))
        return reached

    def _calling(self, call: ResultOf, scope: _Scope) -> _Reached:
        reached = _Reached(0)
        for function in self._values(call.function, scope):
            match function:
                case _Library(name=name):
                    reached |= self._handing(name, call, scope)
                case _Class():
                    for method in self._attribute(_Instance(function, call, scope), "__init__"):
                        reached |= self._entering(method, call, scope)
                case _Instance():
                    for method in self._attribute(function, "__call__"):
                        reached |= self._entering(method, call, scope)
                case _:
                    reached |= self._entering(function, call, scope)
        return reached

    def _entering(self, function: _Object, call: ResultOf, scope: _Scope) -> _Reached:
        match function:
            case _Compiled():
                return _Reached.COMPILED
            case _Function():
                return self._running(function.code, self._entered(function, call, scope))
        return _Reached(0)

    def _handing(self, name: str, call: ResultOf, scope: _Scope) -> _Reached:
        """Return the same for a library's function, which may call those it is passed."""
        reached = _Reached(0)
        if not name.startswith(_JAX) and not library_functions.is_wrapper(name):
            for argument in (*call.arguments, *(value for _, value in call.keywords)):
                for value in self._values(argument, scope):
                    reached |= self._entering(value, ResultOf(argument), scope)
        return reached.repeated(name in _REPEATING)

    def _entered(self, function: _Function, call: ResultOf, scope: _Scope) -> _Scope:
        """Return the scope of a function that is called, with its arguments."""
        parameters = list(function.code.parameters)
        arguments: dict[str, tuple[_Object, ...]] = {}
        if function.owner is not None and parameters:
            arguments[parameters.pop(0)] = (function.owner,)
        for name, value in (*zip(parameters, call.arguments, strict=False), *call.keywords):
            arguments[name] = tuple(self._values(value, scope))
        return _Scope(function.code, function.scope, arguments)

    def _values(self, value: Value, scope: _Scope | None) -> list[_Object]:
        """Return what a value may be, without what is not known."""
        self._left -= 1
        if self._left < 0 or self._depth > _DEEPEST:
            return []
        self._depth += 1
        try:
            return list(self._possible(value, scope))
        finally:
            self._depth -= 1

    def _possible(self, value: Value, scope: _Scope | None) -> Iterator[_Object]:
        match value:
            case NameOf(name=name):
                yield from self._named(name, scope)
            case ImportOf(name=name):
                yield _Library(name)
            case AttributeOf(of=owner, name=name):
                for each in self._values(owner, scope):
                    yield from self._attribute(each, name)
                if isinstance(owner, NameOf):
                    yield from self._assigned(f"{owner.name}.{name}", scope)
            case ResultOf():
                for function in self._values(value.function, scope):
                    yield from self._result(function, value, scope)
            case OneOf(values=values):
                for one in values:
                    yield from self._values(one, scope)
            case Defined(code=code):
                yield _Function(code, scope)
            case DefinedClass(code=code, bases=bases):
                yield _Class(code, bases, scope)

    def _named(self, name: str, scope: _Scope | None) -> Iterator[_Object]:
        while scope is not None:
            if name in scope.arguments:
                yield from scope.arguments[name]
            for value in scope.code.bound.get(name, ()):
                if value != NameOf(name):
                    yield from self._values(value, scope)
            if name in scope.arguments or name in scope.code.parameters:
                return
            if name in scope.code.bound and scope.outer is not None:
                return
            scope = scope.outer
        full_name = self._facts.full_name(name)
        if full_name:
            yield _Library(full_name)
        for index in self._facts.bindings.definers.get(name, ()):
            statement = self._facts.statements[index]
            if statement.name_effects.form.kind == "import":
                continue
            self._analyzed[index] = statement
            for value in statement.code.bound.get(name, ()):
                if value != NameOf(name):
                    yield from self._values(value, _Scope(statement.code))

    def _assigned(self, name: str, scope: _Scope | None) -> Iterator[_Object]:
        """Yield the values of an attribute that statements assign: `f.jit = jax.jit(f)`."""
        while scope is not None:
            for value in scope.code.attributes.get(name, ()):
                yield from self._values(value, scope)
            scope = scope.outer
        for index in self._assigning.get(name, ()):
            statement = self._facts.statements[index]
            self._analyzed[index] = statement
            for value in statement.code.attributes.get(name, ()):
                yield from self._values(value, _Scope(statement.code))

    @functools.cached_property
    def _assigning(self) -> dict[str, list[int]]:
        """The statements that assign to an attribute, by its name."""
        found: dict[str, list[int]] = {}
        for index, statement in enumerate(self._facts.statements):
            if (match := _ASSIGNS.match(statement.text)) is not None:
                found.setdefault(match[1], []).append(index)
        return found

    def _attribute(self, owner: _Object, name: str) -> Iterator[_Object]:
        match owner:
            case _Library(name=full_name):
                yield _Library(f"{full_name}.{name}")
            case _Compiled() if name in _STAGES:
                yield owner
            case _Class():
                yield from self._member(owner, name, None)
            case _Instance(of=kind):
                yield from self._member(kind, name, owner)

    def _member(self, kind: _Class, name: str, owner: _Instance | None) -> Iterator[_Object]:
        """Yield the values of an attribute of a class, or of an instance."""
        scope = _Scope(kind.code, kind.scope)
        for value in kind.code.bound.get(name, ()):
            for member in self._values(value, scope):
                if isinstance(member, _Function):
                    yield _Function(member.code, kind.scope, owner)
                else:
                    yield member
        for base in kind.bases:
            for each in self._values(base, kind.scope):
                if isinstance(each, _Class):
                    yield from self._member(each, name, owner)
        if owner is None:
            return
        given = dict(owner.arguments.keywords)
        for argument in (given[name],) if name in given else owner.arguments.arguments:
            if "__init__" not in kind.code.bound:  # the fields of a dataclass
                yield from self._values(argument, owner.scope)
        for values in kind.code.bound.values():
            for method in self._methods(values):
                for made in method.attributes.get(name, ()):
                    inside = (
                        self._entered(
                            _Function(method, kind.scope, owner), owner.arguments, owner.scope
                        )
                        if owner.scope is not None
                        else _Scope(method, kind.scope)
                    )
                    yield from self._values(made, inside)

    def _methods(self, values: list[Value]) -> Iterator[Code]:
        for value in values:
            while isinstance(value, ResultOf) and value.arguments:
                value = value.arguments[0]
            if isinstance(value, Defined):
                yield value.code

    def _result(self, function: _Object, call: ResultOf, scope: _Scope | None) -> Iterator[_Object]:
        """Yield what a call may return."""
        match function:
            case _Library(name=name) if name.rpartition(".")[2] == "partial" and call.arguments:
                yield from self._values(call.arguments[0], scope)
            case _Library(name=name) if library_functions.is_jit(name):
                yield _Compiled() if call.arguments or call.keywords else function
                if not call.arguments:
                    yield function
            case _Library(name=name) if library_functions.is_wrapper(name):
                for argument in call.arguments[:1]:
                    yield from self._values(argument, scope)
            case _Compiled():
                match call.function:
                    case AttributeOf(of=owner, name=name) if name in _STAGES:
                        yield from self._values(owner, scope)
            case _Function() if id(function.code) not in self._active and scope is not None:
                inside = self._entered(function, call, scope)
                for value in function.code.returned:
                    yield from self._values(value, inside)
            case _Class() if scope is not None:
                yield _Instance(function, call, scope)
            case _Instance() if scope is not None:
                for method in self._attribute(function, "__call__"):
                    if isinstance(method, _Function):
                        yield from self._result(method, call, scope)
