"""Which functions of a module JAX certainly traces, and with which of their arguments traced.

A function is traced if a transformation decorates it or is given it, or if a traced function calls
it. `seen` yields what rules look for in traced functions, with what is known of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.text.functions import (
    SELF,
    Call,
    Class,
    Event,
    Facts,
    Function,
    Handing,
    facts_of,
)
from jaxsight.rules.text.scopes import Source, Sources
from jaxsight.rules.text.statements import Statement, imports_of
from jaxsight.rules.text.transformations import STAGED


@dataclass(slots=True)
class Known:
    """What is known of a traced function."""

    function: Function
    statement: int
    kinds: set[str] = field(default_factory=set)
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


@dataclass(frozen=True, slots=True)
class Module:
    """The functions of a module that are traced."""

    functions: Mapping[str, Known]
    classes: Mapping[str, Class]
    containers: frozenset[str]
    references: frozenset[str]

    def is_live(self, sources: Sources) -> bool:
        """Whether one of these is traced."""
        return any(self._lives(source) for source in sources)

    def _lives(self, source: Source) -> bool:
        known = self.functions.get(source[0])
        if known is None:
            return False
        return source[1] in known.traced or (not source[1] and STAGED in known.kinds)


def seen(statements: Sequence[Statement]) -> Iterator[tuple[Known, Event, Module]]:
    """Yield what rules look for in traced functions, in the order of the text."""
    imports = imports_of(statements)
    if not any(full.partition(".")[0] in _LIBRARIES for _, full in imports):
        return
    facts = [statement.read(facts_of, imports) for statement in statements]
    module = _joined(facts)
    order = [function.name for each in facts for function in each.functions]
    for name in dict.fromkeys(order):
        known = module.functions.get(name)
        if known is not None and known.kinds:
            for event in known.function.events:
                yield known, event, module


_LIBRARIES = frozenset({"jax", "flax", "equinox", "haiku"})


def _joined(facts: Sequence[Facts]) -> Module:
    """Return which functions are traced, of all statements together."""
    functions: dict[str, Known] = {}
    module: list[Function] = []
    for at, each in enumerate(facts):
        module.append(each.functions[0])
        for function in each.functions[1:]:
            functions[function.name] = Known(function, at)  # the last definition counts
    instances = dict(instance for each in facts for instance in each.instances)
    aliases = dict(alias for each in facts for alias in each.aliases)
    classes = {found.name: found for each in facts for found in each.classes}
    joined = Module(
        functions,
        classes,
        frozenset(name for each in facts for name in each.containers),
        frozenset(name for each in facts for name in each.references),
    )

    def known(name: str) -> Known | None:
        for _ in range(4):
            if name in functions:
                return functions[name]
            if name in aliases:
                name = aliases[name]
                continue
            first, _, rest = name.partition(".")
            if instances.get(first) in classes:
                name = f"{instances[first]}.{rest or '__call__'}"
                continue
            owner, _, method = name.rpartition(".")
            base = (
                next((b for b in classes[owner].bases if b in classes), "")
                if owner in classes
                else ""
            )
            if not base:
                return None
            name = f"{base}.{method}"
        return None

    changed: list[str] = []

    def trace(
        callee: Known, kinds: set[str], traced: frozenset[str], by: str, caller: str, outside: bool
    ) -> None:
        before = (len(callee.kinds), len(callee.traced), callee.outside, STAGED not in callee.kinds)
        callee.kinds |= kinds
        callee.traced |= traced
        callee.outside |= outside
        if not callee.by or (STAGED in kinds and before[3]):
            callee.by, callee.caller = by, caller
        if before[:3] != (len(callee.kinds), len(callee.traced), callee.outside):
            changed.append(callee.function.name)

    def hand(handing: Handing, within: Known | None) -> None:
        callee = known(handing.callee)
        if callee is None:
            return
        how, function = handing.tracing, callee.function
        callee.is_root = True
        of_instance = handing.callee.partition(".")[0] in instances
        traced = how.traces(function.parameters, handing.bound + of_instance)
        outside = how.library == "jax" and bool(function.itself)
        outside = outside and function.itself not in traced
        by, caller, kinds = how.by, "", {how.kind}
        if within is not None:
            kinds |= within.kinds
            if how.kind != STAGED and STAGED in within.kinds:
                by, caller = within.by, within.caller or within.function.name
        trace(callee, kinds, traced, by, caller, outside)

    for defined in functions.values():
        own = defined.function
        for how in own.decorated:
            traced = how.traces(own.parameters)
            defined.is_root = True
            static = bool(own.itself) and own.itself not in traced
            unregistered = bool(own.itself) and is_plain(classes, own.owner)
            outside = how.library == "jax" and (static or unregistered)
            trace(defined, {how.kind}, traced - {own.itself}, how.by, "", outside)
    for every in [*module, *(each.function for each in functions.values())]:
        for handing in every.handings:
            hand(handing, None)
    while changed:
        caller = functions[changed.pop()]
        for handing in caller.function.handings:
            hand(handing, caller)
        for call in caller.function.calls:
            callee = known(call.callee)
            if callee is None:
                continue
            traced = _passed(call, callee.function, joined)
            root = caller.caller or caller.function.name
            outside = call.of == SELF and caller.outside
            outside |= call.callee.partition(".")[0] in instances
            trace(callee, set(caller.kinds), traced, caller.by, root, outside)
    return joined


def _passed(call: Call, callee: Function, module: Module) -> frozenset[str]:
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


def is_plain(classes: Mapping[str, Class], name: str) -> bool:
    """Whether a class is an ordinary one: no pytree, no module of a library for networks."""
    found = classes.get(name.rpartition(".")[2])
    if found is None or any(each not in _PLAIN_DECORATORS for each in found.decorators):
        return False
    return all(
        base in _PLAIN or (base != name and base in classes and is_plain(classes, base))
        for base in found.bases
    )
