"""JX303: a `jit` that is made again each time, made once before the function."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

from jaxsight.engine.fixes.asked import Asked, Candidate, FunctionNode
from jaxsight.engine.text import Edit, Position, Range

CODE = "JX303"


def candidates(asked: Asked) -> Iterator[Candidate]:
    """A name for the jitted function at the module's top level, where all that it uses is known there."""
    call = next(asked.find(ast.Call), None)
    statement = next(
        (n for n in asked.tree.body if call is not None and call in set(ast.walk(n))), None
    )
    if not isinstance(call, ast.Call) or not isinstance(statement, FunctionNode | ast.ClassDef):
        return
    if _free(call) & _bound_around(asked, call):
        return
    function = asked.function(call)
    name = asked.fresh(
        f"_{function.name.strip('_') if function is not None else 'function'}_jitted"
    )
    first = min([statement.lineno, *(each.lineno for each in statement.decorator_list)])
    start = Position(asked.chunk.first_line + first - 1, 0)
    yield Candidate(
        f"Make it once, as `{name}`",
        (
            Edit(Range(start, start), f"{name} = {asked.text(call)}\n\n\n"),
            asked.replace(call, name),
        ),
    )


def _free(node: ast.AST) -> set[str]:
    """The names that an expression reads and does not bind."""
    names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
    bound = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    bound |= {each.id for each in names if isinstance(each.ctx, ast.Store)}
    return {each.id for each in names} - bound - set(dir(builtins))


def _bound_around(asked: Asked, node: ast.AST) -> set[str]:
    """The names that the functions around an expression bind."""
    found: set[str] = set()
    for function in asked.around(node):
        if isinstance(function, FunctionNode | ast.Lambda | ast.ClassDef):
            for each in ast.walk(function):
                if isinstance(each, ast.arg):
                    found.add(each.arg)
                elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
                    found.add(each.id)
                elif isinstance(each, FunctionNode) and each is not function:
                    found.add(each.name)
    return found
