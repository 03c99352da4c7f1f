"""Deletes statements: values that others need of them become zeros of the same type."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial

from jaxsight.text.names import bound_in_scope, read_in
from jaxsight_repro.reducing.statements import simplification
from jaxsight_repro.reducing.statements.analysis import Analysis


def focus(
    text: simplification.FileText, analysis: Analysis
) -> Iterator[simplification.FileText | None]:
    """Call only the function that failed, with zeros; innermost functions first.

    Keep only the statement that failed, or those that it depends on.
    """
    for first, line in analysis.frames:
        for depth in (0, 1, 3):
            yield simplification.edited(text, _call, analysis, first, True, line, depth)
        for jitted in (False, True):
            yield simplification.edited(text, _call, analysis, first, jitted, 0, 0)
    for first, line in analysis.frames:
        for depth in (0, 1, 2, 4):
            yield simplification.edited(text, _narrow, analysis, first, line, depth)


def _call(
    tree: ast.Module, analysis: Analysis, first: int, jitted: bool, line: int, depth: int
) -> bool:
    """Let `main` call one function of the module, with zeros."""
    named = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    function = next((node for node in named.values() if node.lineno == first), None)
    main = named.get("main")
    if function is None or main is None or function is main or function.name == "inputs":
        return False
    if line and not _narrow(tree, analysis, first, line, depth):
        return False
    parameters = function.args
    if parameters.vararg or parameters.kwarg or parameters.kwonlyargs:
        return False
    names = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    arguments = [analysis.values.get((first, name)) for name in names]
    if any(argument is None for argument in arguments):
        return False
    called = f"jax.jit({function.name})" if jitted and not line else function.name
    main.args = ast.parse("lambda *arguments: 0", mode="eval").body.args  # type: ignore[attr-defined]
    main.body = ast.parse(f"return {called}({', '.join(map(str, arguments))})").body
    return True


def _narrow(tree: ast.Module, analysis: Analysis, first: int, line: int, depth: int) -> bool:
    """Keep the statement of a function that contains a line, and what it reads, `depth` deep."""
    function = next((node for node in simplification.functions(tree) if node.lineno == first), None)
    if function is None:
        return False
    position = next(
        (
            index
            for index, node in enumerate(function.body)
            if node.lineno <= line <= (node.end_lineno or node.lineno)
        ),
        None,
    )
    if position is None or len(function.body) == 1:
        return False
    kept = {position}
    for _ in range(depth):
        read = set(read_in(*(function.body[index] for index in kept)))
        for index in range(max(kept), -1, -1):
            assigned = set(bound_in_scope(function.body[index]))
            if index not in kept and assigned & read:
                kept.add(index)
                read -= assigned
    missing = _missing(function, kept, analysis)
    if missing is None:
        return False
    function.body = [*missing, *(function.body[index] for index in sorted(kept))]
    return True


def _missing(
    function: simplification.Function, kept: set[int], analysis: Analysis
) -> list[ast.stmt] | None:
    """Return assignments of what kept statements read and others assign; None if unknown."""
    removed = [node for index, node in enumerate(function.body) if index not in kept]
    assigned = set(bound_in_scope(*removed))
    available: set[str] = set()
    needed: set[str] = set()
    for index in sorted(kept):
        node = function.body[index]
        needed |= assigned.intersection(read_in(node)) - available
        available.update(bound_in_scope(node))
    return filled(needed, function.lineno, analysis)


def filled(names: set[str], first: int, analysis: Analysis) -> list[ast.stmt] | None:
    """Return assignments of recorded values to names; None if one was not recorded."""
    lines: list[str] = []
    for name in sorted(names):
        expression = analysis.values.get((first, name))
        if expression is None:
            return None
        lines.append(f"{name} = {expression}")
    return ast.parse("\n".join(lines)).body


def runs(
    text: simplification.FileText, analysis: Analysis, size: int
) -> Iterator[Callable[[], simplification.FileText | None]]:
    """Yield what makes the text without each run of `size` statements, the last ones first."""
    for place, (node, name) in enumerate(simplification.bodies(text.tree)):
        length = len(getattr(node, name))
        for end in range(length, 0, -size):
            if size <= max(length, 1):
                yield partial(
                    simplification.edited, text, _delete, analysis, place, max(end - size, 0), end
                )


def _delete(tree: ast.Module, analysis: Analysis, place: int, start: int, end: int) -> bool:
    node, name = list(simplification.bodies(tree))[place]
    body: list[ast.stmt] = getattr(node, name)
    removed = body[start:end]
    if all(map(simplification.is_text, removed)):
        return False
    function = _around(tree, node)
    scope: ast.AST = function or tree
    first = function.lineno if function is not None else 0
    assigned = set(bound_in_scope(*removed))
    inside = {id(each) for statement in removed for each in ast.walk(statement)}
    read = {
        each.id
        for each in ast.walk(scope)
        if isinstance(each, ast.Name) and id(each) not in inside
        if isinstance(each.ctx, ast.Load)
    }
    kept = filled(assigned & read, first, analysis) if function is not None else []
    if kept is None or (
        kept and all(map(simplification.is_filled, removed)) and len(kept) >= len(removed)
    ):
        return False
    body[start:end] = kept
    if not body and name == "body":
        body.append(ast.Pass())
    return True


def _around(tree: ast.Module, node: ast.AST) -> simplification.Function | None:
    """Return the innermost function that contains a node, or that it is."""
    if isinstance(node, simplification.Function):
        return node
    for function in simplification.functions(tree):
        if any(each is node for each in simplification.own(function)):
            return function
    return None
