"""What the functions of a statement do, as far as it matters to who traces them.

Rules say what they look for in functions (`looked_for`).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import MAPS, NameScope, Sources
from jaxsight.rules.text.statements import Imports
from jaxsight.rules.text.transformations import (
    CALLBACKS,
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


SELF, INSTANCE = "self", "instance"

Look = Callable[[NameScope, ast.AST], Iterator[Event]]
"""Looks at a node of a function."""

_LOOKS: list[Look] = []


def looked_for(look: Look) -> Look:
    """Have functions looked at in this way: the event's data say whose it is."""
    _LOOKS.append(look)
    return look


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call of a function, by the name that it has in the module."""

    callee: str
    arguments: tuple[tuple[int | str, Sources], ...]
    of: str = ""
    """Whose method it is: the caller's own object (`SELF`), or another one (`INSTANCE`)."""
    everywhere: bool = False
    """All parameters take any of the arguments."""


@dataclass(frozen=True, slots=True)
class Handing:
    """A function that is handed to a transformation."""

    callee: str
    tracing: Tracing
    bound: int = 0
    """How many of the first parameters have values: `self`, and those of `partial`."""
    of: str = ""
    """As in `NamedCall`."""


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """What is known of a function from its statement."""

    name: str
    parent: str
    """The function around it; empty for the module."""
    owner: str
    parameters: tuple[str, ...]
    itself: str
    decorated: tuple[Tracing, ...]
    events: tuple[Event, ...]
    calls: tuple[NamedCall, ...]
    handings: tuple[Handing, ...]


@dataclass(frozen=True, slots=True)
class NamedClass:
    """A class: its bases and decorators by their full names."""

    name: str
    bases: tuple[str, ...]
    decorators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What a statement says about its functions, whatever the rest of the module says."""

    functions: tuple[NamedFunction, ...]
    """The module itself first, whose name is empty."""
    classes: tuple[NamedClass, ...]
    instances: tuple[tuple[str, str], ...]
    """Names of the module with what is called to make them, perhaps a class."""
    aliases: tuple[tuple[str, str], ...]
    """Names of the module that a transformed function is assigned to."""
    containers: tuple[str, ...]
    """Names of the module and attributes (`Model.history`) that are lists, dicts, sets."""
    references: tuple[str, ...]
    """The same for what can be changed in a trace."""


def facts_of(tree: ast.Module, imported: Imports) -> FunctionFacts:
    """Return what a statement says about its functions."""
    imports = dict(imported)
    scopes = scopes_of(tree, imports)
    classes = tuple(
        NamedClass(
            node.name,
            tuple(scopes[0].full(_callee(base)) for base in node.bases),
            tuple(scopes[0].full(_callee(decorator)) for decorator in node.decorator_list),
        )
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )
    aliases = []
    for name, value in scopes[0].aliases.items():
        if isinstance(value, ast.Call):
            targets = (dotted(handed.function) for handed in handed_in(value, imports))
            aliases += [(name, target) for target in targets if target]
    return FunctionFacts(
        tuple(map(_function, scopes)),
        classes,
        tuple((name, class_) for name, v in scopes[0].aliases.items() if (class_ := _class_of(v))),
        tuple(aliases),
        tuple(_made(scopes, _CONTAINERS)),
        tuple(_made(scopes, _REFERENCES)),
    )


def _made(scopes: Sequence[NameScope], kinds: re.Pattern[str]) -> Iterator[str]:
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


def _maker(scope: NameScope, value: ast.expr) -> str:
    match value:
        case ast.Call(func=function):
            return scope.full(function)
        case ast.List() | ast.ListComp() | ast.Dict() | ast.DictComp() | ast.Set() | ast.SetComp():
            return "list"
        case _:
            return ""


def is_container(scope: NameScope, value: ast.expr) -> bool:
    """Whether an expression makes a list, a dict, a set or a queue."""
    return _CONTAINERS.fullmatch(_maker(scope, value)) is not None


def is_reference(scope: NameScope, value: ast.expr) -> bool:
    """Whether an expression makes what can be changed in a trace."""
    return _REFERENCES.fullmatch(_maker(scope, value)) is not None


_CONTAINERS = re.compile(
    r"list|dict|set|collections\.(defaultdict|deque|Counter|OrderedDict)|queue\.\w*Queue"
)
GENERATORS = re.compile(r"numpy\.random\.(default_rng|RandomState)|random\.(Random|SystemRandom)")
"""Functions that make generators of random numbers."""
_REFERENCES = re.compile(
    r"jax\.(new_ref|array_ref|empty_ref|Ref|ref\..*|core\.mutable_array|"
    r"experimental\.(array_ref|mutable_array))|flax\.nnx\..*|haiku\..*"
)


def _callee(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _function(scope: NameScope) -> NamedFunction:
    calls: list[NamedCall] = []
    handings: list[Handing] = []
    events: list[Event] = []
    looks = scope.node is not None and not _asks_for_tracers(scope)
    for node, around in scope.nodes:
        if isinstance(node, ast.Call):
            handings += _handings(scope, node)
            calls += _calls(scope, node)
        if looks and not _is_computed(around):
            decided = _decided(scope, around)
            events += (
                # A node that only has a position, so that no tree is kept.
                Event(
                    ast.copy_location(ast.Constant(None), event.at),
                    event.sources - decided,
                    event.data,
                )
                for look in _LOOKS
                for event in look(scope, node)
                if not event.sources or event.sources - decided
            )
    decorators = getattr(scope.node, "decorator_list", ())
    decorated = [how for decorator in decorators if (how := of_decorator(decorator, scope.imports))]
    parent = scope.parent
    return NamedFunction(
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


def _is_computed(around: Sequence[ast.AST]) -> bool:
    """Whether JAX is asked to compute there while tracing."""
    return any(
        "compile_time_eval" in dotted(_callee(manager.context_expr))
        for node in around
        if isinstance(node, ast.With)
        for manager in node.items
    )


def _decided(scope: NameScope, around: Sequence[ast.AST]) -> Sources:
    """Return the sources that the `if` statements around a node compare.

    They are known while tracing: `if x > 0` of a traced value is an error at the `if`, so that
    what is inside does not run (https://docs.jax.dev/en/latest/control-flow.html).
    """
    return frozenset(
        source
        for node in around
        if isinstance(node, ast.If | ast.IfExp)
        for part in (node.test.values if isinstance(node.test, ast.BoolOp) else [node.test])
        if isinstance(part, ast.Compare)
        and all(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in part.ops)
        for source in scope.sources(part)
    )


def _asks_for_tracers(scope: NameScope) -> bool:
    """Whether a function asks if it is being traced: it may return before what it does else."""
    names = (
        part.attr if isinstance(part, ast.Attribute) else part.id
        for node, _ in scope.nodes
        if isinstance(node, ast.If | ast.IfExp)
        for part in ast.walk(node.test)
        if isinstance(part, ast.Attribute | ast.Name)
    )
    asks = {"is_concrete", "trace_state_clean", "jax_disable_jit"}
    return any("Tracer" in name or name in asks for name in names)


def _resolved(scope: NameScope, function: ast.expr, most: int = 4) -> tuple[str, str] | None:
    """Return the name of a function, and whose method it is (`SELF`, `INSTANCE`, or nobody's).

    Names that stand for other functions are followed through so many: a cycle ends.
    """
    if isinstance(function, ast.Lambda):
        lambdas = (around.lambdas.get(function) for around in scope.enclosing())
        return next(((found.name, "") for found in lambdas if found is not None), None)
    name = dotted(function)
    first, _, attribute = name.partition(".")
    if "." in attribute or not name:
        return None
    holder = scope.holder(first)
    alias = holder.aliases.get(first)
    class_ = _class_of(alias)
    if attribute:
        itself = (around for around in scope.enclosing() if around.itself == first)
        if (method := next(itself, None)) is not None:
            return f"{method.owner}.{attribute}", SELF
        return (f"{class_}.{attribute}", INSTANCE) if class_ else (name, "")
    if name in holder.functions:
        return holder.functions[name].name, ""
    if isinstance(alias, ast.Lambda):
        return _resolved(holder, alias)
    if isinstance(alias, ast.Call) and most:
        for handed in handed_in(alias, scope.imports):
            if not isinstance(handed.function, ast.Call):
                return _resolved(holder, handed.function, most - 1)
        if is_partial(alias.func, scope.imports) and alias.args:
            return None
    if holder.node is None:
        return name, ""
    return (f"{class_}.__call__", INSTANCE) if class_ else None


def _class_of(creation: ast.expr | None) -> str:
    """Return the name that is called to make an object, perhaps a class's."""
    called = creation.func if isinstance(creation, ast.Call) else None
    return called.id if isinstance(called, ast.Name) else ""


def _handings(scope: NameScope, call: ast.Call) -> Iterator[Handing]:
    for handed in handed_in(call, scope.imports):
        function, before = handed.function, 0
        while isinstance(function, ast.Call) and is_partial(function.func, scope.imports):
            if not function.args:
                break
            before += len(function.args) - 1
            names = [keyword.arg for keyword in function.keywords if keyword.arg is not None]
            how = handed.tracing
            function = function.args[0]
            how = replace(how, static_names=(*how.static_names, *names))
            handed = replace(handed, function=function, tracing=how)
        if (resolved := _resolved(scope, function)) is not None:
            name, of = resolved
            yield Handing(name, handed.tracing, before + bool(of), of)


def _calls(scope: NameScope, call: ast.Call) -> Iterator[NamedCall]:
    full = scope.full(call.func)
    if full in CALLBACKS:
        return
    function = call.func
    if full in MAPS and call.args:
        if (resolved := _resolved(scope, call.args[0])) is not None:
            mapped = frozenset(s for argument in call.args[1:] for s in scope.sources(argument))
            yield NamedCall(resolved[0], ((0, mapped),), resolved[1], everywhere=True)
        return
    if isinstance(function, ast.Call):  # jax.grad(f)(x)
        inner = [handed.function for handed in handed_in(function, scope.imports)]
        functions = inner if transformation(function.func, scope.imports) else []
    else:
        functions = [function]
    for callee in functions:
        resolved = _resolved(scope, callee)
        if resolved is None:
            continue
        positions: list[tuple[int | str, Sources]] = []
        for at, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                break
            positions.append((at, scope.sources(argument)))
        positions += [
            (word.arg, scope.sources(word.value)) for word in call.keywords if word.arg is not None
        ]
        yield NamedCall(resolved[0], tuple(positions), resolved[1])
