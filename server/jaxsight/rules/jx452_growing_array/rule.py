"""JX452: an array grows in a loop: each iteration copies it, and has another shape to compile.

Found in the text alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from jaxsight.rules.rule import NodeViolation, Rule
from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.python_loops import InLoops, PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in, read_in

RULE = Rule(__name__, "Array grows in a Python loop.", severity="warning")

_GROWS = frozenset(
    {"append", "concatenate", "vstack", "hstack", "row_stack", "column_stack", "insert"}
)
"""Functions of `jax.numpy` that return a longer array than their first one."""


def find(scope: NameScope, loop: PythonLoop, calls: JittedCalls) -> Iterator[NodeViolation]:
    """Yield assignments `x = jnp.concatenate([x, …])` of a loop."""
    if loop.is_short:
        return
    stored = [
        dotted(node)
        for node in ast.walk(loop.node)
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    for statement, _ in loop.statements:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        path, value = dotted(statement.targets[0]), statement.value
        function = _growing(scope, path, value) if stored.count(path) == 1 else ""
        if not function or _is_deepened(loop, path):
            continue
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), value),
            f"{quoted(path, most=24)} grows by `{function}` in a loop: "
            "each length is copied and compiled",
            help="append to a list and `jnp.stack` it once, or write into an array of full size: "
            f"`{path}.at[i].set(…)`",
            notes=(
                "the loop is unrolled into one program, whose copies grow with its square"
                if calls.is_traced(scope)
                else "n iterations copy n²/2 rows, and compile n programs",
            ),
        )


def _growing(scope: NameScope, path: str, value: ast.expr) -> str:
    """Return the function by which an expression is all of an array and more; else nothing."""
    match value:
        case ast.Call(func=function, args=[first, *others]):
            package, _, name = scope.full(function).rpartition(".")
            if package != "jax.numpy" or name not in _GROWS:
                return ""
            if path and dotted(first) == path:
                return name if others else ""
            parts = first.elts if isinstance(first, ast.List | ast.Tuple) else []
        case ast.Subscript(value=joiner, slice=ast.Tuple(elts=parts)):
            name = scope.full(joiner).rpartition(".")[2]
            if scope.full(joiner) not in ("jax.numpy.r_", "jax.numpy.c_"):
                return ""
        case _:
            return ""
    whole = [part for part in parts if path and dotted(part) == path]
    return name if len(whole) == 1 and len(parts) > 1 else ""


def _is_deepened(loop: PythonLoop, path: str) -> bool:
    """Whether the loop runs over layers, each of which is applied to what those before made.

    Then the lengths are those of the network, in each call the same.
    """
    if not isinstance(loop.node, ast.For):
        return False
    items = set(bound_in(loop.node.target))
    return any(
        isinstance(node, ast.Call)
        and not items.isdisjoint(read_in(node.func))
        and _has(node.args, path)
        for node in ast.walk(loop.node)
    )


def _has(nodes: Iterable[ast.expr], path: str) -> bool:
    """Whether a variable or an attribute is in some expressions."""
    return any(dotted(part) == path for node in nodes for part in ast.walk(node))


RULE.finds_in_module(InLoops(find, in_traced=True))
