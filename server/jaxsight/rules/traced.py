"""Which functions of a module JAX certainly traces, and with which of their arguments traced.

A function is traced if a transformation decorates it or is given it, or if a traced function calls
it. Rules say what they look for in functions (`looked_for`); of what they see, `seen` yields what
is in traced functions, with what is known of these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.scopes import MAPS, Scope, Source, Sources, scopes_of
from jaxsight.rules.statements import Imports, Statement, dotted, imports_of
from jaxsight.rules.transformations import (
    CALLBACKS,
    STAGED,
    Tracing,
    handed_in,
    is_partial,
    of_decorator,
    transformation,
)


@dataclass(frozen=True, slots=True)
class Event:
    """What a rule looks for, at an expression of a function."""

    at: ast.expr
    sources: Sources
    """What has to be traced for it to be worth a word; nothing where that does not matter."""
    data: object


Look = Callable[[Scope, ast.AST], Iterator[Event]]
"""Looks at a node of a function."""

_LOOKS: list[Look] = []


def looked_for(look: Look) -> Look:
    """Have functions looked at in this way: the event's data say whose it is."""
    _LOOKS.append(look)
    return look


@dataclass(frozen=True, slots=True)
class _Call:
    callee: str
    arguments: tuple[tuple[int | str, Sources], ...]
    bound: bool = False
    """It is a method of the caller's own object."""
    everywhere: bool = False
    """All parameters take any of the arguments."""


@dataclass(frozen=True, slots=True)
class _Handing:
    callee: str
    tracing: Tracing
    bound: int = 0
    """How many of the first parameters have values: `self`, and those of `partial`."""
    method: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """What is known of a function from its statement."""

    name: str
    parent: str
    """The function around it; empty for the module."""
    owner: str
    parameters: tuple[str, ...]
    itself: str
    decorated: tuple[Tracing, ...]
    events: tuple[Event, ...]
    calls: tuple[_Call, ...]
    handings: tuple[_Handing, ...]


@dataclass(frozen=True, slots=True)
class Class:
    """A class: its bases and decorators by their full names."""

    name: str
    bases: tuple[str, ...]
    decorators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Facts:
    functions: tuple[Function, ...]
    """The module itself first, whose name is empty."""
    classes: tuple[Class, ...]
    aliases: tuple[tuple[str, str], ...]
    """Names of the module that a transformed function is assigned to."""
    containers: tuple[str, ...]
    """Names of the module and attributes (`Model.history`) that are lists, dicts, sets."""
    references: tuple[str, ...]
    """The same for what can be changed in a trace."""


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
    facts = [statement.read(_read, imports) for statement in statements]
    module = _joined(facts)
    order = [function.name for each in facts for function in each.functions]
    for name in dict.fromkeys(order):
        known = module.functions.get(name)
        if known is not None and known.kinds:
            for event in known.function.events:
                yield known, event, module


_LIBRARIES = frozenset({"jax", "flax", "equinox", "haiku"})


def _read(tree: ast.Module, imported: Imports) -> _Facts:
    imports = dict(imported)
    scopes = scopes_of(tree, imports)
    classes = tuple(
        Class(
            node.name,
            tuple(scopes[0].full(_callee(each)) for each in node.bases),
            tuple(scopes[0].full(_callee(each)) for each in node.decorator_list),
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    aliases = []
    for name, value in scopes[0].aliases.items():
        if isinstance(value, ast.Call):
            targets = (dotted(handed.function) for handed in handed_in(value, imports))
            aliases += [(name, target) for target in targets if target]
    return _Facts(
        tuple(map(_function, scopes)),
        classes,
        tuple(aliases),
        tuple(_made(scopes, _CONTAINERS)),
        tuple(_made(scopes, _REFERENCES)),
    )


def _made(scopes: Sequence[Scope], kinds: re.Pattern[str]) -> Iterator[str]:
    """Yield the names of the module and attributes of classes that hold what such calls return.

    Displays of lists and the like are calls of `list`.
    """
    for name, value in scopes[0].aliases.items():
        if kinds.fullmatch(_maker(scopes[0], value)):
            yield name
    for scope in scopes:
        for node, _ in scope.nodes if scope.itself else ():
            match node:
                case (
                    ast.Assign(
                        targets=[ast.Attribute(value=ast.Name(id=name), attr=attr)], value=value
                    )
                    | ast.AnnAssign(
                        target=ast.Attribute(value=ast.Name(id=name), attr=attr),
                        value=ast.expr() as value,
                    )
                ) if name == scope.itself and kinds.fullmatch(_maker(scope, value)):
                    yield f"{scope.owner}.{attr}"
                case _:
                    pass


def _maker(scope: Scope, value: ast.expr) -> str:
    match value:
        case ast.Call(func=function):
            return scope.full(function)
        case ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp() | ast.Set() | ast.SetComp():
            return "list"
        case _:
            return ""


def is_container(scope: Scope, value: ast.expr) -> bool:
    """Whether an expression makes a list, a dict, a set or a queue."""
    return _CONTAINERS.fullmatch(_maker(scope, value)) is not None


def is_reference(scope: Scope, value: ast.expr) -> bool:
    """Whether an expression makes what can be changed in a trace."""
    return _REFERENCES.fullmatch(_maker(scope, value)) is not None


_CONTAINERS = re.compile(
    r"list|dict|set|collections\.(defaultdict|deque|Counter|OrderedDict)|queue\.\w*Queue"
)
_REFERENCES = re.compile(
    r"jax\.(new_ref|array_ref|empty_ref|Ref|ref\..*|core\.mutable_array|"
    r"experimental\.(array_ref|mutable_array))|flax\.nnx\..*|haiku\..*"
)


def _callee(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _function(scope: Scope) -> Function:
    calls: list[_Call] = []
    handings: list[_Handing] = []
    events: list[Event] = []
    for node, around in scope.nodes:
        if isinstance(node, ast.Call):
            handings += _handings(scope, node)
            calls += _calls(scope, node)
        if scope.node is not None and not _is_guarded(around):
            events += (
                Event(_place(event.at), event.sources, event.data)
                for look in _LOOKS
                for event in look(scope, node)
            )
    decorators = getattr(scope.node, "decorator_list", ())
    decorated = [how for each in decorators if (how := of_decorator(each, scope.imports))]
    parent = scope.parent
    return Function(
        scope.name,
        parent.name if parent is not None else "",
        scope.owner,
        scope.parameters,
        scope.itself,
        tuple(decorated),
        tuple(events),
        tuple(calls),
        tuple(handings),
    )


def _place(node: ast.expr) -> ast.expr:
    """Return a node that only has a position, so that no tree is kept."""
    return ast.copy_location(ast.Constant(None), node)


def _is_guarded(around: Sequence[ast.AST]) -> bool:
    """Whether code asks whether it is being traced, or asks JAX to compute while tracing."""
    for node in around:
        test = node.test if isinstance(node, ast.If | ast.IfExp) else None
        if test is not None and any(
            isinstance(each, ast.Attribute | ast.Name) and _asks(each) for each in ast.walk(test)
        ):
            return True
        if isinstance(node, ast.With) and any(
            "compile_time_eval" in dotted(_callee(item.context_expr)) for item in node.items
        ):
            return True
    return False


def _asks(node: ast.Attribute | ast.Name) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id
    return "Tracer" in name or name in {"is_concrete", "trace_state_clean", "jax_disable_jit"}


def _resolved(scope: Scope, function: ast.expr, most: int = 4) -> tuple[str, bool] | None:
    """Return the name of a function, and whether it is a method of the object of this one.

    Names that stand for other functions are followed through so many.
    """
    if isinstance(function, ast.Lambda):
        found = _lambda(scope, function)
        return (found.name, False) if found is not None else None
    name = dotted(function)
    first, _, rest = name.partition(".")
    if rest and "." not in rest:
        at: Scope | None = scope
        while at is not None:
            if at.itself and at.itself == first:
                return f"{at.owner}.{rest}", True
            at = at.parent
        return name, False
    if not name or rest:
        return None
    holder = scope.holder(name)
    if holder is None:
        return None
    if name in holder.functions:
        return holder.functions[name].name, False
    alias = holder.aliases.get(name)
    if isinstance(alias, ast.Lambda):
        return _resolved(holder, alias)
    if isinstance(alias, ast.Call) and most:
        for handed in handed_in(alias, scope.imports):
            if not isinstance(handed.function, ast.Call):
                return _resolved(holder, handed.function, most - 1)
        if is_partial(alias.func, scope.imports) and alias.args:
            return None
    return (name, False) if holder.node is None else None


def _lambda(scope: Scope, node: ast.Lambda) -> Scope | None:
    at: Scope | None = scope
    while at is not None:
        if node in at.lambdas:
            return at.lambdas[node]
        at = at.parent
    return None


def _handings(scope: Scope, call: ast.Call) -> Iterator[_Handing]:
    for handed in handed_in(call, scope.imports):
        function, before = handed.function, 0
        while isinstance(function, ast.Call) and is_partial(function.func, scope.imports):
            if not function.args:
                break
            before += len(function.args) - 1
            names = tuple(each.arg for each in function.keywords if each.arg is not None)
            how = handed.tracing
            function = function.args[0]
            handed = type(handed)(
                function,
                Tracing(
                    how.by, how.kind, how.only, how.static, (*how.static_names, *names),
                    how.unknown, how.library,
                ),
            )  # fmt: skip
        if (found := _resolved(scope, function)) is not None:
            name, bound = found
            yield _Handing(name, handed.tracing, before + bound, bound)


def _calls(scope: Scope, call: ast.Call) -> Iterator[_Call]:
    full = scope.full(call.func)
    if full in CALLBACKS:
        return
    function = call.func
    if full in MAPS and call.args:
        if (found := _resolved(scope, call.args[0])) is not None:
            given = frozenset(s for each in call.args[1:] for s in scope.sources(each))
            yield _Call(found[0], ((0, given),), found[1], everywhere=True)
        return
    if isinstance(function, ast.Call):  # jax.grad(f)(x)
        inner = [each.function for each in handed_in(function, scope.imports)]
        functions = inner if transformation(function.func, scope.imports) else []
    else:
        functions = [function]
    for each in functions:
        found = _resolved(scope, each)
        if found is None:
            continue
        positions: list[tuple[int | str, Sources]] = []
        for at, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                break
            positions.append((at, scope.sources(argument)))
        positions += [
            (word.arg, scope.sources(word.value)) for word in call.keywords if word.arg is not None
        ]
        yield _Call(found[0], tuple(positions), found[1])


def _joined(facts: Sequence[_Facts]) -> Module:
    """Return which functions are traced, of all statements together."""
    functions: dict[str, Known] = {}
    module: list[Function] = []
    for at, each in enumerate(facts):
        module.append(each.functions[0])
        for function in each.functions[1:]:
            functions[function.name] = Known(function, at)  # the last definition counts
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

    def hand(handing: _Handing, within: Known | None) -> None:
        callee = known(handing.callee)
        if callee is None:
            return
        how = handing.tracing
        callee.is_root = True
        traced = how.traces(callee.function.parameters, handing.bound)
        outside = handing.method and how.library == "jax"
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
            outside = call.bound and caller.outside
            trace(callee, set(caller.kinds), traced, caller.by, root, outside)
    return joined


def _passed(call: _Call, callee: Function, module: Module) -> frozenset[str]:
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
