"""Find the functions of a statement, each with its scope and its nodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from jaxsight.rules.text.scopes import NOTHING, FunctionNode, NameScope, Node, Sources
from jaxsight.text.names import bound_by, parameters_of

# Find out what the names of a scope are made from, by the statements that bind them.

_WITH_STRUCTURE = frozenset(
    {
        "jax.tree.flatten", "jax.tree_util.tree_flatten", "jax.tree_flatten",
        "jax.flatten_util.ravel_pytree", "equinox.partition",
        "jax.tree_util.tree_flatten_with_path", "jax.tree.flatten_with_path",
    }
)  # fmt: skip
"""Functions that return arrays, and what is known of them while tracing."""
_FILLS = frozenset({"append", "extend", "insert", "appendleft", "add"})
"""Methods that fill a container."""
BINDING = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.withitem, ast.Call, ast.For,
    ast.AsyncFor, ast.comprehension,
)  # fmt: skip


def bind(scope: NameScope, nodes: Iterable[ast.AST]) -> None:
    """Find out what the names of a scope are made from."""
    for name in scope.parameters:
        if name != scope.itself:
            scope.env[name] = frozenset({(scope.name, name)})
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    _assign(scope, target, value)
                if len(targets) == 1 and isinstance(targets[0], ast.Name):
                    scope.aliases.setdefault(targets[0].id, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.withitem(context_expr=value, optional_vars=ast.expr() as target)
            ):
                _assign(scope, target, value)
            case (
                ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                _add(scope, name, scope.sources(value))
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr)) if (
                attr in _FILLS and name in scope.bound
            ):
                _add(scope, name, scope.sources(ast.Tuple(node.args)))
            case (
                ast.For(target=target, iter=iterable)
                | ast.AsyncFor(target=target, iter=iterable)
                | ast.comprehension(target=target, iter=iterable)
            ):
                _iterate(scope, target, iterable)


def _assign(scope: NameScope, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            for inner_target, element_value in zip(target.elts, value.elts, strict=True):
                _assign(scope, inner_target, element_value)
        else:
            called = scope.full(value.func) if isinstance(value, ast.Call) else ""
            with_structure = called in _WITH_STRUCTURE
            for element in target.elts[:1] if with_structure else target.elts:
                _assign(scope, element, value)
    elif isinstance(target, ast.Starred):
        _assign(scope, target.value, value)
    elif isinstance(target, ast.Name):
        _add(scope, target.id, scope.sources(value))
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        name = f"{target.value.id}.{target.attr}"
        scope.env[name] = scope.env.get(name, NOTHING) | scope.sources(value)
    elif (
        isinstance(target, ast.Subscript)
        and isinstance(target.value, ast.Name)
        and target.value.id in scope.bound
    ):  # what a local list or dict holds
        _add(scope, target.value.id, scope.sources(value))


def _iterate(scope: NameScope, target: ast.expr, iterable: ast.expr) -> None:
    """Bind what a loop counts: indices and keys are known while tracing."""
    full = scope.full(iterable.func) if isinstance(iterable, ast.Call) else ""
    match iterable, target:
        case ast.Call(args=[inner, *_]), ast.Tuple(elts=[_, element]) if full == "enumerate":
            _iterate(scope, element, inner)
        case ast.Call(args=inners), ast.Tuple(elts=elements) if full == "zip":
            for iterated, element in zip(inners, elements, strict=False):
                _iterate(scope, element, iterated)
        case ast.Call(func=ast.Attribute(value=value, attr="items")), ast.Tuple(elts=[_, element]):
            _assign(scope, element, value)
        case ast.Name(id=name), _ if _is_mapping(scope, name, target):
            pass  # the keys are known
        case _:
            _assign(scope, target, iterable)


_MAPPING = re.compile(
    r"(params?|state|dict|tree|batch|config|cfg|kwargs|cache|metrics|grads?|gradients|data|weights|"
    r"variables|opt|stats|names|keys|mapping|model|aux|info|layers)(_|$)|^(d|p|m)$"
)
"""Names of what may be a dict."""


def _is_mapping(scope: NameScope, name: str, target: ast.expr) -> bool:
    """Whether a name may be a dict, so that a loop over it counts keys."""
    creation = scope.holder(name).aliases.get(name)
    if isinstance(creation, ast.List | ast.Tuple | ast.ListComp):
        return False
    if _MAPPING.search(name) or isinstance(creation, ast.Dict | ast.DictComp):
        return True
    counted = target.id if isinstance(target, ast.Name) else ""
    for node, _ in scope.nodes:
        match node:
            case ast.Subscript(value=ast.Name(id=variable), slice=ast.Name(id=index)):
                if variable == name and index == counted:
                    return True
            case ast.Subscript(value=ast.Name(id=variable), slice=ast.Constant(value=str())):
                if variable == name:
                    return True
            case ast.Attribute(value=ast.Name(id=variable), attr="items" | "keys" | "values"):
                if variable == name:
                    return True
    return False


def _add(scope: NameScope, name: str, sources: Sources) -> None:
    env = scope.holder(name).env
    env[name] = env.get(name, NOTHING) | sources


def scopes_of(tree: ast.Module, imports: Mapping[str, str]) -> list[NameScope]:
    """Return the module's scope as far as a statement is concerned, then all functions in it."""
    module = NameScope("", None, None, "", (), imports)
    scopes = [module]
    _enter(tree, module, "", "", scopes)
    for scope in scopes:
        scope.nodes = list(_own_nodes(scope, tree))
    binding = [
        (scope, [node for node, _ in scope.nodes if isinstance(node, BINDING)]) for scope in scopes
    ]
    for _ in range(3):  # values that loops carry, through up to three names
        for scope, nodes in binding:
            bind(scope, nodes)
    for scope in scopes:
        scope.memory = {}
    return scopes


def _enter(
    node: ast.AST, scope: NameScope, prefix: str, owner: str, scopes: list[NameScope]
) -> None:
    """Make the scopes of the functions inside a node."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            _function(child, scope, prefix, owner, scopes)
        elif isinstance(child, ast.ClassDef):
            scope.bound.add(child.name)
            _enter(child, scope, f"{prefix}{child.name}.", f"{prefix}{child.name}", scopes)
        else:
            match child:
                case ast.Global(names=names):
                    scope.declared.update(dict.fromkeys(names, "global"))
                case ast.Nonlocal(names=names):
                    scope.declared.update(dict.fromkeys(names, "nonlocal"))
                case ast.alias():
                    pass  # what a function imports has its full name too
                case _:
                    scope.bound.update(bound_by(child))
            _enter(child, scope, prefix, owner, scopes)


def _function(
    node: FunctionNode, scope: NameScope, prefix: str, owner: str, scopes: list[NameScope]
) -> None:
    args, names = node.args, tuple(parameters_of(node.args))
    own = f"<lambda {node.lineno}:{node.col_offset}>" if isinstance(node, ast.Lambda) else node.name
    name = f"{prefix}{own}"
    inner = NameScope(name, node, scope, owner, names, scope.imports)
    inner.bound |= set(names)
    scopes.append(inner)
    if isinstance(node, ast.Lambda):
        scope.lambdas[node] = inner
    else:
        for decorator in node.decorator_list:
            _enter(ast.Expr(decorator), scope, prefix, "", scopes)
        if not owner:
            scope.bound.add(own)
            scope.functions[own] = inner
    for default in (*args.defaults, *args.kw_defaults):
        if default is not None:
            _enter(ast.Expr(default), scope, prefix, "", scopes)
    # What is entered is a node around the body: a function in it is a child then.
    body = ast.Expr(node.body) if isinstance(node, ast.Lambda) else ast.Module(node.body, [])
    _enter(body, inner, f"{name}.<locals>.", "", scopes)


def _own_nodes(scope: NameScope, tree: ast.Module) -> Iterator[Node]:
    start: list[ast.AST]
    if scope.node is None:
        start = list(tree.body)
    else:
        start = [scope.node.body] if isinstance(scope.node, ast.Lambda) else list(scope.node.body)
    waiting: list[Node] = [(root, ()) for root in reversed(start)]
    while waiting:
        node, around = waiting.pop()
        inside = around
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner: list[ast.AST] = [*node.decorator_list]
        elif isinstance(node, ast.Lambda):
            continue
        elif isinstance(node, ast.ClassDef):
            inner = [
                statement
                for statement in node.body
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
            ]
        else:
            yield node, around
            inner = list(ast.iter_child_nodes(node))
            if isinstance(node, ast.If | ast.IfExp | ast.With):
                inside = (*around, node)
        waiting += [(child, inside) for child in reversed(inner)]
