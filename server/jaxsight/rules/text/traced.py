"""Which functions of a module JAX certainly traces, and with which of their arguments traced.

A function is traced if a transformation decorates it or is given it, or if a traced function calls
it. `traced_events` yields what rules look for in traced functions, with what is known of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.text.functions import (
    SELF,
    Event,
    FunctionFacts,
    Handing,
    NamedCall,
    NamedClass,
    NamedFunction,
    facts_of,
)
from jaxsight.rules.text.scopes import Sources
from jaxsight.rules.text.statements import Identical, Statement, imports_of, uses_jax
from jaxsight.rules.text.transformations import STAGED, How


@dataclass(slots=True)
class TracedFunction:
    """What is known of a traced function."""

    function: NamedFunction
    statement: int
    kinds: set[How] = field(default_factory=set)
    traced: set[str] = field(default_factory=set)
    """Parameters whose values are traced."""
    by: str = ""
    """The transformation that it is traced by, perhaps by way of its callers."""
    caller: str = ""
    """The function that calls it, where that is the one that is transformed."""
    is_root: bool = False
    """A transformation is given it: a trace begins with it."""
    outside: bool = False
    """Its `self` was made outside of the trace."""
    compiled: bool = False
    """Whether `jit` keeps what is traced for later calls, perhaps that of its callers."""

    def named(self, a_lambda: str) -> str:
        """Return the function as messages name it."""
        name = self.function.name.rpartition(".")[2]
        return a_lambda if name.startswith("<") else f"`{name}`"

    def note(self, a_lambda: str) -> str:
        """Return the note on what traces it, perhaps by way of its caller."""
        caller, named = self.caller.rpartition(".")[2], self.named(a_lambda)
        called = f"`{caller}`, which calls {named}" if caller else named
        return f"`{self.by}` traces {called}"


@dataclass(frozen=True, slots=True)
class TracedModule:
    """The functions of a module that are traced."""

    functions: Mapping[str, TracedFunction]
    classes: Mapping[str, NamedClass]
    containers: frozenset[str]
    references: frozenset[str]

    def is_live(self, sources: Sources) -> bool:
        """Whether one of these is traced."""
        return any(
            parameter in function.traced or (not parameter and STAGED in function.kinds)
            for name, parameter in sources
            if (function := self.functions.get(name)) is not None
        )

    def is_staged(self, name: str) -> bool:
        """Whether a function is traced into a larger program: by `jit`, `scan` and so on.

        Methods of modules of networks are, wherever they are called.
        """
        function = self.functions.get(name)
        if function is None:
            return False
        owner = function.function.owner
        is_layer = bool(owner) and not is_plain(self.classes, owner)
        return is_layer or function.compiled or STAGED in function.kinds


def traced_events(
    statements: Sequence[Statement],
) -> Iterator[tuple[TracedFunction, Event, TracedModule]]:
    """Yield what rules look for in traced functions, in the order of the text."""
    module = traced_module(statements)
    for callee in module.functions.values():
        if callee.kinds:
            for event in callee.function.events:
                yield callee, event, module


def traced_module(statements: Sequence[Statement]) -> TracedModule:
    """Return the functions of a module in the order of the text, with what traces them."""
    imports = imports_of(statements)
    if not uses_jax(imports):
        return _NOTHING
    facts = tuple(statement.read(facts_of, imports) for statement in statements)
    return statements[0].read(_propagated, Identical(facts))


_NOTHING = TracedModule({}, {}, frozenset(), frozenset())


def _propagated(_: ast.Module, facts: Identical) -> TracedModule:
    propagation = _Propagation([each for each in facts.values if isinstance(each, FunctionFacts)])
    propagation.run()
    return propagation.module


class _Propagation:
    """Which functions of a module are traced: by transformations, and by calls of traced ones."""

    def __init__(self, facts: Sequence[FunctionFacts]) -> None:
        self._functions: dict[str, TracedFunction] = {}
        self._modules = [statement.functions[0] for statement in facts]
        for number, statement in enumerate(facts):
            for function in statement.functions[1:]:  # the last definition counts
                self._functions[function.name] = TracedFunction(function, number)
        self._instances = dict(instance for statement in facts for instance in statement.instances)
        self._aliases = dict(alias for statement in facts for alias in statement.aliases)
        self._classes = {class_.name: class_ for statement in facts for class_ in statement.classes}
        self._changed: list[str] = []
        self.module = TracedModule(
            self._functions,
            self._classes,
            frozenset(name for statement in facts for name in statement.containers),
            frozenset(name for statement in facts for name in statement.references),
        )

    def run(self) -> None:
        """Find out which functions are traced, from decorators and transformations on."""
        for callee in self._functions.values():
            function = callee.function
            for how in function.decorated:
                traced = how.traces(function.parameters)
                callee.is_root = True
                static = bool(function.itself) and function.itself not in traced
                unregistered = bool(function.itself) and is_plain(self._classes, function.owner)
                outside = how.library == "jax" and (static or unregistered)
                by = how.by
                own = traced - {function.itself}
                self._trace(callee, {how.kind}, own, by, "", outside, how.compiled)
        for definition in [
            *self._modules,
            *(callee.function for callee in self._functions.values()),
        ]:
            for handing in definition.handings:
                self._hand(handing, None)
        while self._changed:
            caller = self._functions[self._changed.pop()]
            for handing in caller.function.handings:
                self._hand(handing, caller)
            for call in caller.function.calls:
                self._call(call, caller)

    def _resolved(self, name: str) -> TracedFunction | None:
        """Return the function of a name, through a few aliases, instances and bases (no cycle)."""
        for _ in range(4):
            if name in self._functions:
                return self._functions[name]
            if name in self._aliases:
                name = self._aliases[name]
                continue
            first, _, method = name.partition(".")
            if self._instances.get(first) in self._classes:
                name = f"{self._instances[first]}.{method or '__call__'}"
                continue
            owner, _, method = name.rpartition(".")
            bases = self._classes[owner].bases if owner in self._classes else ()
            base = next((base for base in bases if base in self._classes), "")
            if not base:
                return None
            name = f"{base}.{method}"
        return None

    def _trace(
        self,
        callee: TracedFunction,
        kinds: set[How],
        traced: frozenset[str],
        by: str,
        caller: str,
        outside: bool,
        compiled: bool = False,
    ) -> None:
        """Add that a function is traced in some ways, with some parameters traced."""
        before = (len(callee.kinds), len(callee.traced), callee.outside, callee.compiled)
        was_staged = STAGED in callee.kinds
        callee.kinds |= kinds
        callee.traced |= traced
        callee.outside |= outside
        callee.compiled |= compiled
        if not callee.by or (STAGED in kinds and not was_staged):
            callee.by, callee.caller = by, caller
        after = (len(callee.kinds), len(callee.traced), callee.outside, callee.compiled)
        if before != after:
            self._changed.append(callee.function.name)

    def _hand(self, handing: Handing, within: TracedFunction | None) -> None:
        """Trace a function that is handed to a transformation, perhaps in a traced function."""
        callee = self._resolved(handing.callee)
        if callee is None:
            return
        how, function = handing.tracing, callee.function
        callee.is_root = True
        of_instance = handing.callee.partition(".")[0] in self._instances
        traced = how.traces(function.parameters, handing.bound + of_instance)
        outside = how.library == "jax" and bool(function.itself)
        outside = outside and function.itself not in traced
        by, caller, kinds = how.by, "", {how.kind}
        if within is not None:
            kinds |= within.kinds
            if how.kind != STAGED and STAGED in within.kinds:
                by, caller = within.by, within.caller or within.function.name
        compiled = how.compiled or (within is not None and within.compiled)
        self._trace(callee, kinds, traced, by, caller, outside, compiled)

    def _call(self, call: NamedCall, caller: TracedFunction) -> None:
        """Trace a function that a traced function calls."""
        callee = self._resolved(call.callee)
        if callee is None:
            return
        traced = _passed(call, callee.function, self.module)
        root = caller.caller or caller.function.name
        outside = call.of == SELF and caller.outside
        outside |= call.callee.partition(".")[0] in self._instances
        kinds, compiled = set(caller.kinds), caller.compiled
        self._trace(callee, kinds, traced, caller.by, root, outside, compiled)


def _passed(call: NamedCall, callee: NamedFunction, module: TracedModule) -> frozenset[str]:
    """Return the parameters that take traced values in a call."""
    parameters = callee.parameters[1:] if callee.itself else callee.parameters
    live = [at for at, sources in call.arguments if module.is_live(sources)]
    if call.everywhere:
        return frozenset(parameters) if live else frozenset()
    return frozenset(
        at if isinstance(at, str) else parameters[min(at, len(parameters) - 1)]
        for at in live
        if parameters and (isinstance(at, str) or at < len(parameters))
    ) & frozenset(parameters)


_PLAIN = frozenset({"object", "abc.ABC", "typing.Protocol", "typing.Generic"})
_PLAIN_DECORATORS = frozenset({"dataclasses.dataclass", "dataclass", "typing.final"})


def is_plain(classes: Mapping[str, NamedClass], name: str) -> bool:
    """Whether a class is an ordinary one: no pytree, no module of a library for networks."""
    class_ = classes.get(name.rpartition(".")[2])
    if class_ is None or any(decorator not in _PLAIN_DECORATORS for decorator in class_.decorators):
        return False
    return all(
        base in _PLAIN or (base != name and base in classes and is_plain(classes, base))
        for base in class_.bases
    )
