"""Which state from outside the functions of a statement read, and which they assign."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.jx450_stale_state.frames import ScopeFrame, constant_of, frame_of
from jaxsight.rules.text.expressions import FunctionNode, Place, dotted, place_of
from jaxsight.rules.text.jitted import decorated, is_bound_once, jit_of
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope, Sources
from jaxsight.rules.text.statements import Imports

_FIRST = re.compile(
    r"_*(init|initialize|setup|set_up|setUp|build|create|make|prepare|load|restore|compile|"
    r"configure|post_init|from|new|enter|setstate|deserialize|register|main|test)(_|$)"
)
"""Names of functions that set state before anything is traced."""
_PRINTS = re.compile(r"print|(.*\.)?(log|logger|logging)\.\w+")
_RENEWS = frozenset({"jit", "filter_jit", "clear_cache", "clear_caches", "pmap"})
"""What has functions traced again, with the state of then."""


@dataclass(frozen=True, slots=True)
class StateRead:
    """A variable of the module or of a function around it, or an attribute of `self`."""

    name: str
    """As it is written: `rate`, `config.rate`, `self.rate`."""
    holder: str
    """The function that binds the variable; empty for the module."""
    owner: str
    """The class whose attribute it is, of the method's own object; else empty."""
    place: Place


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a function assigns to a variable from outside of it, or to an attribute or item."""

    name: str
    """`rate`, `config.rate`, `self.rate`; the container for an item with a name: `CONFIG`."""
    holder: str
    owner: str
    """As in `StateRead`."""
    function: str
    place: Place
    is_first: bool
    """It is made where state is first set, by the name of the function."""
    renews: bool
    """It is made where functions are jitted anew."""
    is_nothing: bool
    """`None` is assigned: what is not there yet."""
    always: bool
    """It is in no branch of the function."""
    constant: str
    """The source of a constant; empty for other values."""
    is_name: bool
    """A variable is assigned, such as a parameter."""
    sources: Sources
    """What its value is made of."""


@dataclass(frozen=True, slots=True)
class StateFacts:
    """What a statement says about state, whatever the rest of its module says."""

    reads: tuple[tuple[str, StateRead], ...]
    """By function."""
    parameter_reads: tuple[tuple[str, str, str], ...]
    """Functions with a parameter and an attribute of it that they, or functions in them, read."""
    assignments: tuple[Assignment, ...]
    compared: tuple[str, ...]
    """Classes whose objects have a value: they define `__eq__` or `__hash__`."""
    frames: tuple[tuple[str, ScopeFrame], ...]
    """What functions do in order; the module's part under an empty name."""
    local: tuple[tuple[str, str, str], ...]
    """Functions with a name that they bind to a jitted function, and its name in the module."""
    instances: tuple[tuple[str, str, str], ...]
    """Functions with a name that they bind to what a call returns, and what they call."""


def node_at(place: Place) -> ast.expr:
    """Return a node that only has a place, so that no tree is kept."""
    line, column, end_line, end_column = place
    return ast.Constant(
        None, lineno=line, col_offset=column, end_lineno=end_line, end_col_offset=end_column
    )


def state_facts(tree: ast.Module, imported: Imports) -> StateFacts:
    """Return what a statement says about state."""
    reads: list[tuple[str, StateRead]] = []
    parameters: list[tuple[str, str, str]] = []
    assignments: list[Assignment] = []
    frames: list[tuple[str, ScopeFrame]] = []
    local: list[tuple[str, str, str]] = []
    instances: list[tuple[str, str, str]] = []
    for scope in scopes_of(tree, dict(imported)):
        if not isinstance(scope.node, ast.Lambda):
            frames.append((scope.name, frame_of(scope.node.body if scope.node else tree.body)))
        if scope.node is None:
            continue
        local += _local(scope)
        instances += (
            (scope.name, name, value.func.id)
            for name, value in scope.aliases.items()
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
        )
        reads += ((scope.name, read) for read in _reads(scope))
        parameters += (
            (holder.name, node.value.id, node.attr)
            for node, _ in scope.nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if node.value.id in (holder := scope.holder(node.value.id)).parameters
        )
        assignments += _assignments(scope)
    compared = (
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(getattr(part, "name", "") in ("__eq__", "__hash__") for part in node.body)
    )
    return StateFacts(
        tuple(reads),
        tuple(parameters),
        tuple(assignments),
        tuple(compared),
        tuple(frames),
        tuple(local),
        tuple(instances),
    )


def _local(scope: NameScope) -> Iterator[tuple[str, str, str]]:
    for name, inner in scope.functions.items():
        if isinstance(inner.node, FunctionNode) and any(decorated(inner.node, scope.imports)):
            yield scope.name, name, inner.name
    for name, value in scope.aliases.items():
        for jitted in jit_of(value, scope.imports) if is_bound_once(scope, name) else ():
            if jitted.of in scope.functions:
                yield scope.name, name, scope.functions[jitted.of].name
            elif jitted.of.startswith("<"):
                yield scope.name, name, f"{scope.name}.<locals>.{jitted.of}"


def _reads(scope: NameScope) -> Iterator[StateRead]:
    aside = {id(node.func) for node, _ in scope.nodes if isinstance(node, ast.Call)}
    aside |= {
        id(node.value)
        for node, _ in scope.nodes
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load)
    }
    aside |= {
        id(inner)
        for node, _ in scope.nodes
        if isinstance(node, ast.Call) and _PRINTS.fullmatch(dotted(node.func))
        for inner in ast.walk(node)
    }
    for node, _ in scope.nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()) if id(node) not in aside:
                holder = scope.holder(name)
                if holder is not scope and name not in scope.imports:
                    yield StateRead(name, holder.name, "", place_of(node))
            case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Load()):
                owner, holder = _owner(scope, name), scope.holder(name)
                is_outer = bool(owner) or (holder is not scope and name not in scope.imports)
                if is_outer and id(node) not in aside:
                    yield StateRead(f"{name}.{attr}", holder.name, owner, place_of(node))


def _owner(scope: NameScope, name: str) -> str:
    """Return the class whose object a name is in a method, or in a function inside of one."""
    itself = (around for around in scope.enclosing() if around.itself == name)
    method = next(itself, None)
    return method.owner if method is not None else ""


def _assignments(scope: NameScope) -> Iterator[Assignment]:
    names = scope.name.split(".")
    renews = any(
        dotted(node.func).rpartition(".")[2] in _RENEWS
        for node, _ in scope.nodes
        if isinstance(node, ast.Call)
    )
    is_first = any(map(_FIRST.match, names))
    for node, around in scope.nodes:
        match node:
            case ast.Assign(value=value):
                targets = node.targets
            case ast.AugAssign(value=value) | ast.AnnAssign(value=ast.expr() as value):
                targets = [node.target]
            case _:
                continue
        is_nothing = isinstance(value, ast.Constant) and value.value is None
        for part in (part for target in targets for part in _parts(target)):
            path = dotted(part.value) if isinstance(part, ast.Subscript) else dotted(part)
            root = path.partition(".")[0]
            owner, holder = _owner(scope, root), scope.holder(root)
            if not path or path.count(".") > 1 or root in scope.imports:
                continue
            if not owner and (
                holder is scope or (path == root == dotted(part) and root not in scope.declared)
            ):
                continue
            place, sources = place_of(part), scope.sources(value)
            yield Assignment(
                path,
                holder.name,
                owner,
                scope.name,
                place,
                is_first,
                renews,
                is_nothing,
                not any(isinstance(condition, ast.If) for condition in around),
                constant_of(value) if not isinstance(node, ast.AugAssign) else "",
                isinstance(value, ast.Name) and not isinstance(node, ast.AugAssign),
                sources,
            )


def _parts(target: ast.expr) -> Iterator[ast.expr]:
    """Yield the variables, attributes and items with a name that a target assigns to."""
    match target:
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from _parts(part)
        case ast.Starred(value=inner):
            yield from _parts(inner)
        case ast.Subscript(slice=ast.Constant(value=str())) | ast.Name() | ast.Attribute():
            yield target
