"""Keys that code outside of traces uses again: in each iteration of a loop, or in each call.

Found in the text: a call of `jax.random` in a Python loop with a variable, an attribute or an item
that the loop leaves as it is; and in a method with an attribute that no method replaces.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.jx403_key_reuse.key_uses import (
    handed,
    is_assigned,
    root_of,
    use_of,
)
from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.python_loops import PythonLoop
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports
from jaxsight.rules.violation import NodeViolation
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in

_ONCE = re.compile(
    r"_*(init|initialize|setup|set_up|setUp|build|create|make|prepare|load|reset|test|main|new|"
    r"post_init)(_|$)"
)
"""Names of functions that are called once for an object."""


def in_loop(scope: NameScope, loop: PythonLoop, __: JittedCalls) -> Iterator[NodeViolation]:
    """Yield uses of a key that a loop leaves as it is."""
    if loop.count is not None and loop.count < 2:
        return
    bound = set(bound_in(*ast.iter_child_nodes(loop.node)))
    changed = handed(scope, loop.node)
    for _, call, _ in loop.calls():
        used = use_of(scope, call)
        if used is None:
            continue
        function, path = used
        root = root_of(path)
        if root in bound or is_assigned(loop.node, path) or (path != root and root in changed):
            continue
        last, always = loop.statements[-1]
        if always and isinstance(last, ast.Break | ast.Return):
            continue
        splits = function == "split"
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), call),
            "PRNG key split in every iteration of a loop: all give the same keys"
            if splits
            else "PRNG key reused in every iteration of a loop: all draw the same numbers",
            help=f"replace it in each iteration: `{path}, subkey = jax.random.split({path})`",
            notes=(f"the loop does not change {quoted(path)}",),
        )


@dataclass(frozen=True, slots=True)
class Unreplaced:
    """An attribute that its class does not replace, nor anything else in the module."""

    attribute: str


def in_methods(
    tree: ast.Module, imports: Imports, traced: frozenset[str]
) -> tuple[NodeViolation, ...]:
    """Return uses of an attribute that only `__init__` assigns, in other methods."""
    return tuple(
        violation
        for scope in scopes_of(tree, dict(imports))
        if scope.itself and scope.name not in traced
        for violation in _in_method(scope, tree)
    )


def _in_method(scope: NameScope, tree: ast.Module) -> Iterator[NodeViolation]:
    """Yield uses of an attribute that only `__init__` assigns, in other methods."""
    own = scope.name.rpartition(".")[2]
    if _ONCE.match(own):
        return
    for node, _ in scope.nodes:
        used = use_of(scope, node)
        if used is None or not isinstance(node, ast.Call):
            continue
        function, path = used
        first, _, attribute = path.partition(".")
        if first != scope.itself or not attribute.isidentifier():
            continue
        class_ = next(
            (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef)
             and each.name == scope.owner.rpartition(".")[2]),
            None,
        )  # fmt: skip
        if class_ is None or class_.bases or class_.decorator_list:
            continue
        stores = list(_stores(class_, attribute))
        if not stores or any(method != "__init__" for method in stores):
            continue
        what = "gives the same keys" if function == "split" else "draws the same numbers"
        yield NodeViolation(
            ast.copy_location(ast.Constant(None), node),
            f"PRNG key {quoted(path, most=24)} is never replaced: each call {what}",
            help=f"replace it in the method: `{path}, subkey = jax.random.split({path})`",
            notes=(f"only `__init__` assigns it, and {quoted(own)} may be called many times",),
            data=Unreplaced(attribute),
            severity="warning",
        )


def _stores(class_: ast.ClassDef, attribute: str) -> Iterator[str]:
    """Yield the methods that assign an attribute of `self`, or that something is done with."""
    for method in class_.body:
        if not isinstance(method, FunctionNode):
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.Attribute) and node.attr == attribute:
                if not isinstance(node.ctx, ast.Load):
                    yield method.name
            elif isinstance(node, ast.Call) and dotted(node.func) in (
                "setattr",
                "object.__setattr__",
            ):
                yield "setattr"
