"""Rules about the Python loops of a module: what they share."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxsight.rules.text.jitted import JittedCalls, JittedModule, jitted_module
from jaxsight.rules.text.python_loops import PythonLoop, comprehensions, python_loops
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports, Statement, imports_of
from jaxsight.rules.violation import ModuleViolation, NodeViolation

LookAtLoop = Callable[[NameScope, PythonLoop, JittedCalls], Iterator[NodeViolation]]


@dataclass(frozen=True, slots=True)
class InLoops:
    """Finds something in loops, for `finds_in_module`."""

    look: LookAtLoop
    """Yields what it finds in a loop of a function or of the module (the scope)."""
    in_traced: bool = False
    """Whether the loops of functions that are traced count, which JAX unrolls."""
    in_tests: bool = False
    """Whether those of functions count that are named as tests."""

    def __call__(self, statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
        module, imports = jitted_module(statements), imports_of(statements)
        for number, statement in enumerate(statements):
            if "for " in statement.text or "while " in statement.text:
                for violation in statement.read(self._found, imports, module):
                    yield ModuleViolation(number, violation)

    def _found(
        self, tree: ast.Module, imports: Imports, module: JittedModule
    ) -> tuple[NodeViolation, ...]:
        calls = JittedCalls(module)
        found: list[NodeViolation] = []
        for scope in scopes_of(tree, dict(imports)):
            is_test = scope.name.rpartition(".")[2].startswith("test")
            if isinstance(scope.node, ast.Lambda) or (is_test and not self.in_tests):
                continue
            if calls.is_traced(scope) and not self.in_traced:
                continue
            body = scope.node.body if scope.node is not None else tree.body
            for loop in (*python_loops(scope, body), *comprehensions(scope)):
                found += self.look(scope, loop, calls)
        return tuple(found)
