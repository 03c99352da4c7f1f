"""JX431: a clock is read before what it times is computed, because nothing waits for the result.

Found in the text of the module: between two readings of a clock, and in what `timeit` runs.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jaxsight.rules.jx431_timed_dispatch.dispatches import (
    DispatchFacts,
    DispatchScope,
    dispatching_parameters,
    facts_of,
    of_module,
)
from jaxsight.rules.jx431_timed_dispatch.moments import ARRAY_METHODS, CLOCK, Moments, Unawaited
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import FunctionNode, dotted, keyword
from jaxsight.rules.text.statements import Statement, imports_of, own_statements, written
from jaxsight.rules.text.transformations import of_decorator
from jaxsight.rules.violation import ModuleViolation, NodeViolation
from jaxsight.rules.wording import quoted
from jaxsight.text.magics import is_timed, timed_by_magics
from jaxsight.text.names import bound_in_scope, parameters_of
from jaxsight.text.parsing import module_in

RULE = Rule(
    "JX431",
    "timed-dispatch",
    "Clock is read before the timed computation has finished.",
    severity="warning",
    word="jax",
)

_CLOCKS = frozenset({"time", "timeit", "datetime"})
"""Modules with clocks."""
_NEITHER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
"""Statements that measure nothing themselves."""
_TIMEIT = frozenset({"timeit.timeit", "timeit.repeat", "timeit.Timer"})


@dataclass(frozen=True, slots=True)
class Dispatched:
    """A computation that is timed without waiting for its result."""

    loops: int
    """The number of loops between the readings of the clock that it is in."""


@RULE.finds_in_module
def find(statements: Sequence[Statement]) -> Iterator[ModuleViolation]:
    """Yield what is dispatched last before a clock is read, unless something may wait for it.

    Functions that JAX traces are skipped: a clock in a trace measures the trace.
    """
    imports = imports_of(statements)
    clocks = [name for name, full in imports if full.partition(".")[0] in _CLOCKS]
    reads_clock = re.compile(rf"\b(?:{'|'.join(clocks)})\b" if clocks else "(?!)")
    measuring = [
        number
        for number, statement in enumerate(statements)
        if is_timed(statement.text) or reads_clock.search(statement.text)
    ]
    if measuring:
        module = _Measured(statements, [each.read(facts_of, imports) for each in statements])
        yield from module.violations(of_module(module.facts, dict(imports)), measuring)


class _Measured:
    """A module that measures times."""

    def __init__(self, statements: Sequence[Statement], facts: Sequence[DispatchFacts]) -> None:
        self._statements = statements
        self.facts = facts
        self._traced = frozenset(name for fact in facts for name in fact.traced)

    def violations(
        self, scope: DispatchScope, measuring: Sequence[int]
    ) -> Iterator[ModuleViolation]:
        trees = {number: self._statements[number].tree() for number in measuring}
        own = (node for tree in trees.values() for node in tree.body)
        if not all(isinstance(node, _NEITHER) for node in own):
            yield from self._in_module(scope)
        for number, tree in trees.items():
            for violation in self._in_functions(tree.body, scope):
                yield ModuleViolation(number, violation)

    def _in_module(self, scope: DispatchScope) -> Iterator[ModuleViolation]:
        """Yield what is timed outside of functions."""
        trees: list[ast.Module] = []
        for statement in self._statements:
            tree = statement.tree()  # statements with the same text share it
            trees.append(copy.deepcopy(tree) if any(tree is each for each in trees) else tree)
        number_of = {node: number for number, tree in enumerate(trees) for node in ast.walk(tree)}
        body = [node for tree in trees for node in tree.body]
        timed = list(timed_by_magics(trees))
        for violation in self._in_scope(body, scope, "", timed):
            yield ModuleViolation(number_of[violation.node], violation)

    def _in_functions(
        self, body: Sequence[ast.stmt], scope: DispatchScope
    ) -> Iterator[NodeViolation]:
        for node in own_statements(body):
            if isinstance(node, ast.ClassDef):
                yield from self._in_functions(node.body, scope.of_class(node))
            elif isinstance(node, FunctionNode):
                given = dispatching_parameters(node, self.facts, scope)
                inside = scope.inside(node, given)
                if not self._is_traced(node, scope):
                    yield from self._in_scope(node.body, inside, node.name)
                yield from self._in_functions(node.body, inside)

    def _is_traced(self, function: FunctionNode, scope: DispatchScope) -> bool:
        how = (of_decorator(decorator, scope.imports) for decorator in function.decorator_list)
        return function.name in self._traced or any(how)

    def _in_scope(
        self,
        body: Sequence[ast.stmt],
        scope: DispatchScope,
        name: str,
        timed: Sequence[Sequence[ast.stmt]] = (),
    ) -> Iterator[NodeViolation]:
        """Yield what a scope times, and what it has `timeit` and magics time."""
        calls = [call for statement in own_statements(body) for call in _own_calls(statement)]
        if any(CLOCK.fullmatch(scope.full(call.func)) for call in calls):
            for last in Moments(scope, body, name).unawaited():
                yield _violation(last)
        for run in timed:
            yield from _unawaited_at_the_end(run, scope)
        for call in calls:
            if scope.full(call.func) in _TIMEIT:
                yield from _run_by_timeit(call, body, scope)


def _own_calls(statement: ast.stmt) -> Iterator[ast.Call]:
    """Yield the calls of a statement, without those in its statements and functions."""
    if isinstance(statement, FunctionNode | ast.ClassDef):
        return
    waiting = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        waiting += [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]


def _run_by_timeit(
    call: ast.Call, body: Sequence[ast.stmt], scope: DispatchScope
) -> Iterator[NodeViolation]:
    """Yield what `timeit` runs if it ends before its result is computed."""
    run = call.args[0] if call.args else keyword(call, "stmt")
    match run:
        case ast.Lambda(args=arguments, body=value):
            inside = replace(scope, local=scope.local | set(parameters_of(arguments)))
            yield from _unawaited_at_the_end([ast.Expr(value)], inside)
        case ast.Constant(value=str(text)):
            timed = module_in(text)
            for violation in _unawaited_at_the_end(timed.body if timed is not None else [], scope):
                yield replace(violation, node=run, data=None)
        case ast.Name(id=name) if definition := _defined(name, body):
            inside = scope.inside(definition, frozenset())
            yield from _unawaited_at_the_end(definition.body, inside)
        case ast.expr() if scope.is_function(run):
            function = run.args[0] if isinstance(run, ast.Call) and run.args else run
            yield replace(_worded(run, f"{dotted(function)}(…)", 0), data=None)


def _unawaited_at_the_end(
    body: Sequence[ast.stmt], scope: DispatchScope
) -> Iterator[NodeViolation]:
    last = Moments(scope, body).unawaited_at_the_end()
    if last is not None:
        yield _violation(last)


def _defined(name: str, body: Sequence[ast.stmt]) -> FunctionNode | None:
    """Return the function that a scope defines by a name, if it binds it once."""
    if list(bound_in_scope(*body)).count(name) != 1:
        return None
    functions = (node for node in own_statements(body) if isinstance(node, FunctionNode))
    return next((node for node in functions if node.name == name), None)


def _violation(last: Unawaited) -> NodeViolation:
    """Return the violation at the whole of an expression that computes with a result."""
    node: ast.expr = last.call
    around = ast.walk(last.statement)
    parents = {child: each for each in around for child in ast.iter_child_nodes(each)}
    loops = last.loops
    while True:
        match parents.get(node):
            case (ast.BinOp() | ast.UnaryOp() | ast.List()) as outer:
                node = outer
            case ast.Subscript(value=value) as outer if value is node:
                node = outer
            case ast.ListComp(elt=elt) as outer if elt is node:
                node, loops = outer, loops - 1
            case ast.Attribute(attr=attr) as outer if attr in ARRAY_METHODS:
                call = parents.get(outer)
                if not isinstance(call, ast.Call) or call.func is not outer:
                    break
                node = call
            case _:
                break
    return _worded(node, written(node), loops)


def _worded(node: ast.expr, text: str, loops: int) -> NodeViolation:
    return NodeViolation(
        node,
        f"{quoted(text)} is timed without waiting for its result",
        help=f"wait before the clock is read: {quoted(f'jax.block_until_ready({text})', most=80)}",
        notes=("the call returns once the computation is dispatched, before it has finished",),
        data=Dispatched(loops),
    )
