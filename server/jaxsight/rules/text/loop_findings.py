"""Rules about the Python loops of a module: what they share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.rule import ModuleViolation, NodeViolation
from jaxsight.rules.text.jitted import JittedCalls, JittedModule, jitted_module
from jaxsight.rules.text.python_loops import PythonLoop, comprehensions, python_loops
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports, Statement, imports_of, uses_jax

LookAtLoop = Callable[[NameScope, PythonLoop, JittedCalls], Iterator[NodeViolation]]


@dataclass(frozen=True, slots=True, eq=False)
class InLoops:
    """Finds something in loops, for `finds_in_module`."""

    look: LookAtLoop
    """Yields what it finds in a loop of a function or of the module (the scope)."""
    in_traced: bool = False
    """Whether the loops of functions that are traced count, which JAX unrolls."""
    in_tests: bool = False
    """Whether those of functions count that are named as tests."""

    def __post_init__(self) -> None:
        _LOOKS.append(self)

    def __call__(self, statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
        imports = imports_of(statements)
        if not uses_jax(imports):
            return
        module = jitted_module(statements)
        for number, statement in enumerate(statements):
            if "for " in statement.text or "while " in statement.text:
                found = statement.read(_found, imports, module)
                yield from (ModuleViolation(number, each) for each in found.get(self, ()))


_LOOKS: list[InLoops] = []
"""All rules about loops: they look at a statement together, whose scopes take the most time."""


def _found(
    tree: ast.Module, imports: Imports, module: JittedModule
) -> dict[InLoops, list[NodeViolation]]:
    calls = JittedCalls(module)
    found: dict[InLoops, list[NodeViolation]] = {}
    for scope in scopes_of(tree, dict(imports)):
        body = getattr(scope.node, "body", tree.body)
        loops = (
            [*python_loops(scope, body), *comprehensions(scope)] if isinstance(body, list) else []
        )
        is_test = scope.name.rpartition(".")[2].startswith("test")
        traced = bool(loops) and calls.is_traced(scope)
        for rule in _LOOKS:
            if (is_test and not rule.in_tests) or (traced and not rule.in_traced):
                continue
            for loop in loops:
                found.setdefault(rule, []).extend(rule.look(scope, loop, calls))
    return found
