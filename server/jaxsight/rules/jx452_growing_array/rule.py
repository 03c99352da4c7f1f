"""JX452: an array grows in a loop: each iteration copies it, and has another shape to compile.

Found in the text alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import name_of
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.loop_findings import InLoops
from jaxsight.rules.text.python_loops import PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.violation import NodeViolation
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in, read_in

RULE = Rule(
    "JX452",
    "growing-array",
    "Array grows in a Python loop.",
    severity="warning",
)

_GROWS = frozenset(
    {"append", "concatenate", "vstack", "hstack", "row_stack", "column_stack", "insert"}
)
"""Functions of `jax.numpy` that return a longer array than their first one."""


def find(scope: NameScope, loop: PythonLoop, calls: JittedCalls) -> Iterator[NodeViolation]:
    """Yield assignments `x = jnp.concatenate([x, …])` of a loop."""
    if loop.is_short:
        return
    bound = list(bound_in(*ast.iter_child_nodes(loop.node)))
    for statement, _ in loop.statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                pass
            case _:
                continue
        if bound.count(name) != 1 or not _grows(scope, name, call) or _is_deepened(loop, name):
            continue
        shown, function = quoted(name, most=24), name_of(call)
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), call),
            f"{shown} grows by `{function}` in a loop: each length is copied and compiled",
            help="append to a list and `jnp.stack` it once, or write into an array of full size: "
            f"`{name}.at[i].set(…)`",
            notes=_notes(scope, loop, name, calls),
        )


def _grows(scope: NameScope, name: str, call: ast.Call) -> bool:
    """Whether a call returns all of an array and more."""
    package, _, function = scope.full(call.func).rpartition(".")
    if package != "jax.numpy" or function not in _GROWS or not call.args:
        return False
    match call.args[0]:
        case ast.Name(id=first):
            return first == name and len(call.args) > 1
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            whole = [part for part in parts if isinstance(part, ast.Name) and part.id == name]
            return len(whole) == 1 and len(parts) > 1
        case _:
            return False


def _is_deepened(loop: PythonLoop, name: str) -> bool:
    """Whether the loop runs over layers, each of which is applied to what those before made.

    Then the lengths are those of the network, in each call the same.
    """
    if not isinstance(loop.node, ast.For):
        return False
    items = set(bound_in(loop.node.target))
    return any(
        isinstance(node, ast.Call)
        and not items.isdisjoint(read_in(node.func))
        and name in read_in(*node.args)
        for node in ast.walk(loop.node)
    )


def _notes(scope: NameScope, loop: PythonLoop, name: str, calls: JittedCalls) -> tuple[str, ...]:
    if calls.is_traced(scope):
        return ("the loop is unrolled into one program, whose copies grow with its square",)
    notes = ["n iterations copy n²/2 rows, and compile n programs"]
    for _, call, _ in loop.calls():
        called = calls.called(scope, call)
        if called is not None and name in read_in(*called[1].traced_arguments(call)):
            notes.append(f"`{called[0]}` is compiled for each length, too")
            break
    return tuple(notes)


RULE.finds_in_module(InLoops(find, in_traced=True))
