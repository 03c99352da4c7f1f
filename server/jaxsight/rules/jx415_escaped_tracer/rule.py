"""JX415: a traced value is kept where it outlives the trace: a global, an attribute, a list.

Found in the text of the module: in functions that a transformation certainly traces.
"""

# Longer than most rules: what keeps a value (a variable, an attribute, a container) and whether
# that outlives the trace are two searches.

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from jaxsight.rules.rule import ModuleViolation, NodeViolation, Rule
from jaxsight.rules.text.expressions import call_operands
from jaxsight.rules.text.functions import Event, is_container, is_reference, looked_for
from jaxsight.rules.text.scopes import NOTHING, NameScope
from jaxsight.rules.text.statements import Statement, written
from jaxsight.rules.text.traced import TracedFunction, TracedModule, is_plain, traced_events
from jaxsight.rules.text.transformations import STAGED
from jaxsight.rules.wording import fitting, quoted
from jaxsight.text.names import with_defaults

RULE = Rule(
    __name__,
    "Traced value is kept where it outlives its trace.",
    severity="warning",
    unless="JX402",
)

_KEEPS = frozenset(
    {
        "append", "extend", "insert", "add", "update", "setdefault", "appendleft", "extendleft",
        "put", "put_nowait",
    }
)  # fmt: skip
"""Methods of containers that keep what they are given.

Some are those of other objects too: `optimizer.update(grads, state)` returns what it makes.
"""
_ALWAYS = frozenset({"append", "extend", "appendleft", "extendleft"})
_REFERENCE = re.compile(r"(^|_)refs?\d*$|ref$", re.IGNORECASE)
_STATE = frozenset({"value", "raw_value"})
"""Attributes of the variables of libraries, which handle state themselves."""


Kept = Literal["global", "variable", "attribute", "container"]


@dataclass(frozen=True, slots=True)
class Escape:
    """Where a value is kept."""

    target: str
    """As it is written: `self.state`, `LOG`, `CACHE[k]`."""
    kind: Kept
    root: str
    holder: str
    """The function that binds the root; empty for the module."""
    value: str
    container: str = ""
    """What must hold a container, by its name in the module: `LOG`, `Model.history`."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield assignments of traced values to what was made outside of the trace.

    What a traced function makes and drops itself is not reported, nor the objects of libraries
    that carry state through a trace.
    """
    for traced, event, module in traced_events(statements):
        escape = event.data
        if not isinstance(escape, Escape) or not module.is_live(event.sources):
            continue
        if not _leaves(escape, traced, module):
            continue
        holder = quoted(escape.target)
        if escape.kind in ("global", "variable"):
            holder = f"the {escape.kind} {holder}"
        message = fitting(
            f"traced value {quoted(escape.value)} escapes into {holder}",
            f"traced value escapes into {holder}",
        )
        staged = ("it is kept while tracing only: compiled calls keep nothing",)
        function = traced.named("the lambda")
        violation = NodeViolation(
            event.at,
            message,
            help=f"return the value from {function}, and keep it where the result is used",
            notes=(
                "once the trace is over, using the value raises `UnexpectedTracerError`",
                *(staged if STAGED in traced.kinds else ()),
                traced.note("the lambda"),
            ),
        )
        yield ModuleViolation(traced.statement, violation)


@looked_for
def look(scope: NameScope, node: ast.AST) -> Iterator[Event]:
    """Yield the target of an assignment, or the call of a method, that keeps a value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned(scope, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from _assigned(scope, target, value)
        case ast.AugAssign(target=target, value=value):
            yield from _assigned(scope, target, value)
        case ast.Call(func=ast.Attribute(value=container, attr=attr)) if attr in _KEEPS:
            values = call_operands(node)
            sources = NOTHING.union(*map(scope.sources, values))
            escape = _escape(scope, container, "container", ", ".join(map(written, values)))
            if escape is None or not sources:
                return
            if attr in _ALWAYS or (local := _local(scope, container)) is True:
                yield Event(node, sources, escape)
            elif local is None:
                name = _shared(scope, container)
                yield Event(node, sources, replace(escape, container=name))
        case ast.Call(
            func=ast.Name(id="setattr"), args=[target, ast.Constant(value=str(attr)), value]
        ):
            escape = _escape(scope, target, "attribute", written(value))
            if escape is not None and (sources := scope.sources(value)):
                attribute = f"{escape.target}.{attr}"
                yield Event(node, sources, replace(escape, target=attribute))


def _assigned(scope: NameScope, target: ast.expr, value: ast.expr) -> Iterator[Event]:
    if isinstance(target, ast.Tuple | ast.List):
        parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        if len(parts) != len(target.elts):
            parts = [value] * len(target.elts)
        for element, part in zip(target.elts, parts, strict=True):
            yield from _assigned(scope, element, part)
        return
    if not (sources := scope.sources(value)):
        return
    text = written(value)
    match target:
        case ast.Name(id=name) if name in scope.declared:
            kind: Kept = "global" if scope.declared[name] == "global" else "variable"
            holder = scope.holder(name).name
            yield Event(target, sources, Escape(name, kind, name, holder, text))
        case ast.Attribute(value=base, attr=attr) if attr not in _STATE or not _has_state(scope):
            escape = _escape(scope, base, "attribute", text)
            if escape is not None:
                yield Event(target, sources, replace(escape, target=written(target)))
        case ast.Subscript(value=base, slice=index):
            is_ellipsis = isinstance(index, ast.Constant) and index.value is ...
            escape = _escape(scope, base, "container", text)
            if escape is not None and not is_ellipsis:
                yield Event(target, sources, replace(escape, target=written(target)))


def _has_state(scope: NameScope) -> bool:
    """Whether a library is imported whose variables are changed in a trace."""
    return any(full.startswith(("flax", "haiku", "brainstate")) for full in scope.imports.values())


def _escape(scope: NameScope, base: ast.expr, kind: Kept, value: str) -> Escape | None:
    """Return where an object is that something is kept in, if it is not the function's own."""
    root, last = base, ""
    while True:
        match root:
            case ast.Call(func=ast.Attribute(value=inner, attr="setdefault" | "get")):
                root = inner
            case ast.Attribute(value=inner, attr=attr):
                root, last = inner, last or attr
            case ast.Subscript(value=inner):
                root = inner
            case _:
                break
    if not isinstance(root, ast.Name) or _REFERENCE.search(last or root.id):
        return None
    holder = scope.holder(root.id)
    if holder is scope and root.id != scope.itself:
        # A default value is made once, with the function.
        default = _default(scope, root.id)
        if kind != "container" or default is None or not is_container(scope, default):
            return None
        return Escape(written(base), kind, root.id, "", value)
    if holder.node is None and root.id in scope.imports and kind != "attribute":
        return None
    creation = holder.aliases.get(root.id)
    if creation is not None and is_reference(scope, creation):
        return None
    return Escape(written(base), kind, root.id, holder.name, value)


def _default(scope: NameScope, name: str) -> ast.expr | None:
    """Return the default value of a parameter."""
    pairs = with_defaults(scope.node.args) if scope.node is not None else ()
    return next((default for parameter, default in pairs if parameter.arg == name), None)


def _local(scope: NameScope, base: ast.expr) -> bool | None:
    """Whether a name of a function is a container; `None` for what other statements bind."""
    base = base.value if isinstance(base, ast.Subscript) else base
    if not isinstance(base, ast.Name) or (holder := scope.holder(base.id)).node is None:
        return None
    creation = holder.aliases.get(base.id) or _default(holder, base.id)
    return creation is not None and is_container(scope, creation)


def _shared(scope: NameScope, base: ast.expr) -> str:
    """Return the name of a container in the module: `LOG`, `Model.history`."""
    base = base.value if isinstance(base, ast.Subscript) else base
    match base:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attr):
            holder = scope.holder(name)
            owner = holder.owner if holder.itself == name else ""
            return f"{owner}.{attr}"
        case _:
            return "?"


def _leaves(escape: Escape, function: TracedFunction, module: TracedModule) -> bool:
    """Whether a value leaves the trace where it is kept."""
    if escape.container and escape.container not in module.containers:
        return False
    if not escape.holder:
        return escape.root not in module.references
    holder = module.functions.get(escape.holder)
    if holder is None:
        return False
    if escape.root == holder.function.itself:
        if not is_plain(module.classes, holder.function.owner):
            return False
        if holder.outside:
            return True
    elif escape.root in holder.function.parameters and "kernel" in escape.holder:
        return False
    if holder is function:
        return False
    return not holder.kinds or _begins_between(function, escape.holder, module)


def _begins_between(function: TracedFunction, holder: str, module: TracedModule) -> bool:
    """Whether a trace begins in a function, or between it and the function around it."""
    at: TracedFunction | None = function
    while at is not None and at.function.name != holder:
        if at.is_root:
            return True
        at = module.functions.get(at.function.parent)
    return False
