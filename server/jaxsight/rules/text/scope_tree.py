"""Find the functions of a statement, each with its scope and its nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from jaxsight.rules.text.origins import Origins
from jaxsight.rules.text.scopes import FunctionNode, NameScope, Node
from jaxsight.text.names import bound_by, parameters_of


def scopes_of(tree: ast.Module, imports: Mapping[str, str]) -> list[NameScope]:
    """Return the module's scope as far as a statement is concerned, then all functions in it."""
    module = NameScope("", None, None, "", (), imports)
    scopes = [module]
    _enter(tree, module, "", "", scopes)
    for scope in scopes:
        scope.nodes = list(_own_nodes(scope, tree))
        for node, _ in scope.nodes:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    scope.aliases.setdefault(name, value)
    origins = Origins(scopes, tree)
    for scope in scopes:
        scope.origins = origins.of
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
