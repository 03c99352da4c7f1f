"""Find out whether running code reaches a loop that calls compiled functions: a training loop.

Code is interpreted on what its variables may be: functions, classes and objects of the module, and
functions of libraries. Calls are followed through the module; what is not known is taken to be not
compiled. A function is interpreted once for all calls with the same arguments.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from jaxsight.source.abstract_interpretation.interpreter import AbstractInterpreter, AbstractState
from jaxsight.source.analysis import library_functions
from jaxsight.source.analysis.syntax_trees import is_main_guard, is_short
from jaxsight.source.slicing.name_facts import NameFacts
from jaxsight.source.statements import TopLevelStatement, tree_of
from jaxsight.text.names import parameters_of
from jaxsight.text.parsing import FunctionNode

_DEEPEST = 12
"""Calls that are followed, one inside the other, a choice: deeper ones mostly recurse."""
_MOST = 20_000
"""Expressions that are interpreted for a statement, a choice: programs need hundreds; with more,
code that is written to branch would block the event loop."""
_REPEATING = frozenset(
    {"map", "filter", "functools.reduce", "itertools.accumulate", "timeit.timeit", "timeit.repeat"}
)
"""Functions that call their arguments many times."""
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


@dataclass(frozen=True, slots=True)
class _Function:
    node: FunctionNode
    scope: _Running
    owner: _Instance | None = None


@dataclass(frozen=True, slots=True)
class _Class:
    node: ast.ClassDef
    scope: _Running


@dataclass(frozen=True, eq=False, slots=True)
class _Instance:
    of: _Class
    arguments: _Arguments
    attributes: dict[str, _Objects] = field(default_factory=dict)


_Object = _Library | _Compiled | _Function | _Class | _Instance
_Objects = frozenset[_Object]
_NOTHING: _Objects = frozenset()
_Arguments = tuple[tuple[int | str, _Objects], ...]
"""By position or name."""


@dataclass(slots=True)
class _Summary:
    """What is known of running code."""

    returned: _Objects = _NOTHING
    compiles: bool = False
    """It calls a compiled function."""
    loops: bool = False
    """It does so in a loop of many iterations."""


class CompiledLoops:
    """Follows the calls of a module's statements; `analyzed` is told which ones it has read."""

    def __init__(self, facts: NameFacts, analyzed: dict[int, TopLevelStatement]) -> None:
        self.facts = facts
        self.analyzed = analyzed
        self.left = 0
        self.depth = 0
        self.summaries: dict[tuple[_Function | _Class, _Arguments], _Summary] = {}
        self.members: dict[_Class, Mapping[str, _Objects]] = {}
        self._executed: dict[int, _Running] = {}

    def reached(self, statement: TopLevelStatement) -> bool:
        """Return whether executing a statement reaches a loop that calls compiled functions."""
        if self.left < 0:  # some are not complete
            self.summaries.clear()
        self.left, self.depth = _MOST, 0
        return self._run(statement).summary.loops

    def _run(self, statement: TopLevelStatement) -> _Running:
        running = _Running(self, None)
        if statement.broken is None:
            with suppress(_Enough, RecursionError):
                running.run(tree_of(statement.text).body)
        return running

    def named(self, name: str) -> _Objects:
        """Return what a name of the module may be."""
        full_name = self.facts.full_name(name)
        found: set[_Object] = {_Library(full_name)} if full_name else set()
        for index in self.facts.bindings.definers.get(name, ()):
            if self.facts.statements[index].name_effects.form.kind != "import":
                found |= self.executed(index).bound.get(name, _NOTHING)
        return frozenset(found)

    def executed(self, index: int) -> _Running:
        """Return what a statement of the module binds."""
        if index not in self._executed:
            statement = self.facts.statements[index]
            self.analyzed[index] = statement
            self._executed[index] = _Running(self, None)  # what it is for itself
            self._executed[index] = self._run(statement)
        return self._executed[index]


class _Enough(Exception):
    """The code is too long to be interpreted further."""


class _Running(AbstractInterpreter[AbstractState[_Objects], _Objects]):
    """Code that runs: a statement of the module, a function that is called, the body of a class."""

    ITERATIONS = 2

    def __init__(
        self,
        module: CompiledLoops,
        outer: _Running | None,
        arguments: dict[str, _Objects] | None = None,
    ) -> None:
        super().__init__(AbstractState(arguments or {}))
        self._module, self._outer = module, outer
        self.bound: dict[str, _Objects] = dict(self.state.names)
        """What names are bound to at any time: functions inside see all of it."""
        self.summary = _Summary()

    @property
    def _is_repeated(self) -> bool:
        iterables = [
            loop.iter if isinstance(loop, ast.For | ast.AsyncFor) else loop.generators[0].iter
            for loop in self.loops
            if not isinstance(loop, ast.While)
        ]
        return len(iterables) < len(self.loops) or not all(map(is_short, iterables))

    def statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If) and is_main_guard(node.test):
            self.run(node.orelse)
        else:
            super().statement(node)

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if isinstance(node, ast.ClassDef):
            made: _Objects = frozenset({_Class(node, self)})
        else:
            made = frozenset({_Function(node, self)})
            for decorator in reversed(node.decorator_list):
                made = self._called(self.evaluate(decorator), ((0, made),))
        self._bind(node.name, made)

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            top = alias.name.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                full = f"{node.module}.{alias.name}" if node.module and not node.level else ""
                top = alias.name
            else:
                full = alias.name if alias.asname else top
            self._bind(alias.asname or top, frozenset({_Library(full)} if full else ()))

    def assign(self, target: ast.expr, value: _Objects, _source: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value)
            case ast.Attribute(value=owner, attr=name):
                for each in self.evaluate(owner):
                    if isinstance(each, _Instance):
                        each.attributes[name] = each.attributes.get(name, _NOTHING) | value

    def _bind(self, name: str, value: _Objects) -> None:
        self.state.names[name] = value
        self.bound[name] = self.bound.get(name, _NOTHING) | value

    def either(self, values: Sequence[_Objects]) -> _Objects:
        return _NOTHING.union(*values)

    def expression(self, node: ast.expr) -> _Objects:
        self._module.left -= 1
        if self._module.left < 0:
            raise _Enough
        match node:
            case ast.Name(id=name):
                return self._named(name)
            case ast.Attribute(value=inner, attr=name):
                return self.either([self._attribute(each, name) for each in self.evaluate(inner)])
            case ast.Call(func=function, args=args, keywords=keywords):
                functions = self.evaluate(function)
                given: _Arguments = tuple(enumerate(map(self.evaluate, args)))
                given += tuple((word.arg or "", self.evaluate(word.value)) for word in keywords)
                result = self._called(functions, given)
                is_stage = isinstance(function, ast.Attribute) and function.attr in _STAGES
                return result | (functions & {_Compiled()}) if is_stage else result
            case ast.Lambda():
                return frozenset({_Function(node, self)})
            case ast.Subscript(value=inner, slice=index):
                value = self.evaluate(inner)
                self.evaluate(index)
                return value
            case ast.Dict(keys=keys, values=parts):
                for key in keys:
                    if key is not None:
                        self.evaluate(key)
                return self.either([self.evaluate(part) for part in parts])
            case ast.Tuple() | ast.List() | ast.BoolOp() | ast.Starred() | ast.Await():
                return self.either(self.parts(node))
            case _:
                self.parts(node)
                return _NOTHING

    def _named(self, name: str) -> _Objects:
        if self._outer is None:
            return self.state.names.get(name, _NOTHING) | self._module.named(name)
        if name in self.state.names:
            return self.state.names[name]
        outer: _Running = self._outer
        while outer._outer is not None and name not in outer.bound:
            outer = outer._outer
        if outer._outer is not None:
            return outer.bound[name]
        return outer.bound.get(name, _NOTHING) | self._module.named(name)

    def _attribute(self, owner: _Object, name: str) -> _Objects:
        match owner:
            case _Library(name=full_name):
                return frozenset({_Library(f"{full_name}.{name}")})
            case _Compiled() if name in _STAGES:
                return frozenset({owner})
            case _Class():
                return self._member(owner, name)
            case _Instance(of=kind):
                members = self._member(kind, name)
                return self._of_object(owner, name) | {
                    replace(member, owner=owner) if isinstance(member, _Function) else member
                    for member in members
                }
        return _NOTHING

    def _member(self, kind: _Class, name: str) -> _Objects:
        """Return what an attribute of a class may be, or of its bases."""
        found = self._members(kind).get(name, _NOTHING)
        for base in kind.node.bases:
            for each in kind.scope.evaluate(base):
                if isinstance(each, _Class) and each != kind:
                    found |= self._member(each, name)
        return found

    def _members(self, kind: _Class) -> Mapping[str, _Objects]:
        if kind not in self._module.members:
            self._module.members[kind] = {}
            body = _Running(self._module, kind.scope)
            body.run(kind.node.body)
            # Methods do not see the names of the class.
            self._module.members[kind] = {
                name: frozenset(
                    replace(each, scope=kind.scope) if isinstance(each, _Function) else each
                    for each in values
                )
                for name, values in body.bound.items()
            }
        return self._module.members[kind]

    def _of_object(self, owner: _Instance, name: str) -> _Objects:
        """Return what an attribute of an object may be, which its methods assign."""
        methods = [node for node in owner.of.node.body if isinstance(node, ast.FunctionDef)]
        # Python generates that of a dataclass or a module of Flax from its fields.
        if all(method.name != "__init__" for method in methods):  # the fields of a dataclass
            given = dict(owner.arguments)
            positional = [value for at, value in owner.arguments if isinstance(at, int)]
            return given[name] if name in given else self.either(positional)
        if name not in owner.attributes:
            owner.attributes[name] = _NOTHING
            for method in methods:
                if any(isinstance(n, ast.Attribute) and n.attr == name for n in ast.walk(method)):
                    self._summary(_Function(method, owner.of.scope, owner), ())
        return owner.attributes[name]

    # Calls.

    def _called(self, functions: _Objects, arguments: _Arguments) -> _Objects:
        """Call each of several functions, and return what they may return."""
        return self.either([self._call(function, arguments) for function in functions])

    def _call(self, function: _Object, arguments: _Arguments) -> _Objects:
        match function:
            case _Compiled():
                self._reach(_Summary(compiles=True))
                return _NOTHING
            case _Library(name=name):
                return self._handed(name, arguments)
            case _Instance():
                return self._called(self._attribute(function, "__call__"), arguments)
            case _Function() | _Class():
                summary = self._summary(function, arguments)
                self._reach(summary)
                return summary.returned

    def _reach(self, summary: _Summary, *, repeated: bool = False) -> None:
        """Note what code reaches that is called here."""
        self.summary.compiles |= summary.compiles
        is_loop = summary.compiles and (repeated or self._is_repeated)
        self.summary.loops |= summary.loops or is_loop

    def _handed(self, name: str, arguments: _Arguments) -> _Objects:
        """Return what a library's function returns, which may call those it is passed."""
        first = dict(arguments).get(0, _NOTHING)
        # It returns a function with the body of its first argument.
        if name.rpartition(".")[2] == "partial":
            return first
        if library_functions.is_jit(name):
            made = frozenset[_Object]({_Compiled()} if arguments else ())
            return made if 0 in dict(arguments) else made | {_Library(name)}
        if library_functions.is_wrapper(name):
            return first
        if not name.startswith(_JAX):
            for _, values in arguments:
                for value in values:
                    inside = _Running(self._module, self._outer)
                    if isinstance(value, _Function | _Compiled):
                        inside._call(value, ())
                    self._reach(inside.summary, repeated=name in _REPEATING)
        return _NOTHING

    def _summary(self, function: _Function | _Class, arguments: _Arguments) -> _Summary:
        """Return what calling a function does, or making an object."""
        module, key = self._module, (function, arguments)
        if key in module.summaries:
            return module.summaries[key]
        summary = module.summaries[key] = _Summary()  # where it calls itself
        if module.depth > _DEEPEST:
            return summary
        module.depth += 1
        if isinstance(function, _Class):
            instance = _Instance(function, arguments)
            summary.returned = frozenset({instance})
            for method in self._member(function, "__init__"):
                if isinstance(method, _Function):
                    made = self._summary(replace(method, owner=instance), arguments)
                    summary.compiles, summary.loops = made.compiles, made.loops
        else:
            running = _Running(module, function.scope, dict(_passed(function, arguments)))
            returned = running.run_function(function.node)
            summary.returned = returned
            summary.compiles, summary.loops = running.summary.compiles, running.summary.loops
        module.depth -= 1
        return summary


def _passed(function: _Function, arguments: _Arguments) -> Iterator[tuple[str, _Objects]]:
    """Yield the values of a function's parameters."""
    parameters = list(parameters_of(function.node.args))
    yield from ((name, _NOTHING) for name in parameters)
    if function.owner is not None and parameters:
        yield parameters.pop(0), frozenset({function.owner})
    for at, value in arguments:
        if isinstance(at, str):
            yield at, value
        elif at < len(parameters):
            yield parameters[at], value
