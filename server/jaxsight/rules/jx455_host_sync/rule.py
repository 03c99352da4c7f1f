"""JX455: each iteration of a loop waits for the device, as the host reads a result of the step.

Found in the text alone: a jitted function of the module is called in a Python loop, takes what the
loop made of its results before, and one of its results is read where nothing on the device needs
it: logged, summed up, tested.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from jaxsight.rules.rule import Rule
from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.loop_findings import InLoops
from jaxsight.rules.text.python_loops import PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import written
from jaxsight.rules.violation import NodeViolation
from jaxsight.rules.wording import quoted
from jaxsight.text.names import bound_in, read_in

RULE = Rule(
    "JX455",
    "host-sync",
    "Each iteration of a loop waits for the device.",
    severity="warning",
)

Sync = Literal["number", "array", "print", "test"]
_NUMBERS = frozenset({"float", "int", "bool", "complex"})
_METHODS = frozenset({"item", "tolist"})
_TIMES = frozenset(
    {"block_until_ready", "perf_counter", "time", "monotonic", "sleep", "process_time", "timeit"}
)
"""What is called where a loop measures or paces its steps, and waits on purpose."""
_KNOWN = frozenset(
    {"shape", "dtype", "ndim", "size", "sharding", "nbytes", "is_ready", "copy_to_host_async"}
)
"""Attributes of arrays that are known before their values are."""
_PRINTS = frozenset({"print", "wandb.log", "mlflow.log_metric", "mlflow.log_metrics"})
_PRINTING = frozenset({"set_postfix", "add_scalar", "log_metric"})
"""Methods of progress bars and of those that write metrics, which format what they are given."""
_LOGS = re.compile(r"(.*\.)?_*(log|logger|logging)\.(debug|info|warning|error|log)", re.IGNORECASE)
_HELP: dict[Sync, str] = {
    "number": "keep the array, and convert it after the loop or every 100 iterations",
    "array": "copy it after the loop, or every 100 iterations",
    "print": "print every 100 iterations: `if i % 100 == 0:`",
    "test": "test every 100 iterations, or run the loop on the device: `jax.lax.while_loop`",
}


def find(scope: NameScope, loop: PythonLoop, calls: JittedCalls) -> Iterator[NodeViolation]:
    """Yield the first place in a loop that waits for a result of the step."""
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for node in ast.walk(loop.node)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    if loop.is_short or not names.isdisjoint(_TIMES):
        return
    results = _Results(scope, calls)
    found: list[tuple[ast.expr, Sync, ast.stmt]] = []
    for statement, always in loop.statements:
        found += [(*sync, statement) for sync in results.syncs_of(statement)] if always else []
        results.bind(statement)
    if isinstance(loop.node, ast.While):
        found += [(node, kind, loop.node) for node, kind in results.syncs_in_test(loop.node.test)]
    if not results.is_carried:
        return
    for node, kind, statement in found:
        if _is_for_the_host_alone(statement, loop):
            yield NodeViolation(
                ast.copy_location(ast.Constant(None), node),
                f"{quoted(written(node))} waits for the device in every iteration",
                help=_HELP[kind],
                notes=(
                    f"calls of `{results.step}` run ahead of the device until a value is needed",
                    "then the device is idle until the host has made the next call",
                ),
            )
            return


@dataclass(slots=True)
class _Results:
    """The names of a loop that are bound to what its jitted functions return."""

    scope: NameScope
    calls: JittedCalls
    step: str = ""
    """The jitted function that is called first."""
    names: set[str] = field(default_factory=set)
    arguments: set[str] = field(default_factory=set)
    made: set[str] = field(default_factory=set)
    """What the loop computes of results, which the host does not wait for."""

    @property
    def is_carried(self) -> bool:
        """Whether a call depends on the results of the one before."""
        return not self.arguments.isdisjoint(self.names | self.made)

    def bind(self, statement: ast.stmt) -> None:
        """Follow what a statement assigns."""
        match statement:
            case ast.Assign(targets=targets, value=value):
                names = set(bound_in(*targets))
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                names = set(bound_in(target))
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value]
                )
            ) if self._depends(value) and not any(self._syncs(value, self.names)):
                self.names.add(name)  # a list of results
                return
            case _:
                return
        called = self.calls.called(self.scope, value) if isinstance(value, ast.Call) else None
        if called is not None and isinstance(value, ast.Call):
            name, jitted = called
            self.step = self.step or name
            self.names |= names
            self.arguments.update(read_in(*jitted.traced_arguments(value)))
        elif self._depends(value) and not any(self._syncs(value, self.names)):
            self.made |= names
            if isinstance(value, ast.Subscript | ast.Attribute | ast.Name):
                self.names |= names
        else:
            self.names -= names

    def syncs_of(self, statement: ast.stmt) -> Iterator[tuple[ast.expr, Sync]]:
        """Yield the expressions of a statement that wait for a result."""
        match statement:
            case ast.If(test=test):
                yield from self.syncs_in_test(test)
            case ast.Expr(value=ast.Call(func=function) as call):
                inner = list(self._syncs(call, self.names))
                yield from inner
                method = function.attr if isinstance(function, ast.Attribute) else ""
                prints = self.scope.full(function) in _PRINTS or method in _PRINTING
                prints = prints or _LOGS.fullmatch(dotted(function)) is not None
                arguments = (*call.args, *(word.value for word in call.keywords))
                shown = (each for each in arguments if prints or isinstance(each, ast.JoinedStr))
                if not inner and any(map(self._depends, shown)):
                    yield call, "print"
            case ast.Expr() | ast.Assign() | ast.AugAssign() | ast.AnnAssign():
                if statement.value is not None:
                    yield from self._syncs(statement.value, self.names)

    def syncs_in_test(self, test: ast.expr) -> Iterator[tuple[ast.expr, Sync]]:
        """Yield a test that needs the value of a result."""
        if any(self._syncs(test, self.names)) or self._compares(test):
            yield test, "test"

    def _compares(self, test: ast.expr) -> bool:
        match test:
            case ast.Compare(ops=ops):
                is_value = not any(
                    isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in ops
                )
                return is_value and self._depends(test)
            case ast.BoolOp(values=values):
                return any(map(self._compares, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._compares(operand)
            case ast.Name(id=name):
                return name in self.names
            case ast.Call(func=function):
                full = self.scope.full(function)
                return full.startswith("jax.numpy.is") and self._depends(test)
            case _:
                return False

    def _depends(self, node: ast.AST) -> bool:
        """Whether the value of an expression is made of a result's, beyond its shape and type."""
        return _reads(node, self.names)

    def _syncs(self, node: ast.AST, names: set[str]) -> Iterator[tuple[ast.expr, Sync]]:
        match node:
            case ast.Lambda():
                return
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for generator in node.generators:
                    if _reads(generator.iter, names):
                        names = names | set(bound_in(generator.target))
            case ast.Call(func=function, args=arguments):
                full = self.scope.full(function)
                kind: Sync | None = None
                is_copy = full.startswith("numpy.") and not full.startswith("numpy.testing.")
                if full in _NUMBERS:
                    kind = "number"
                elif is_copy or full == "jax.device_get":
                    kind = "array"
                if kind is not None and any(_reads(argument, names) for argument in arguments):
                    yield node, kind
                    return
                if (
                    isinstance(function, ast.Attribute)
                    and function.attr in _METHODS
                    and _reads(function.value, names)
                ):
                    yield node, "number"
                    return
        for child in ast.iter_child_nodes(node):
            yield from self._syncs(child, names)


def _reads(node: ast.AST, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=attr) if attr in _KNOWN:
            return False
        case ast.Call(func=ast.Name(id="len" | "isinstance" | "type" | "id" | "hasattr")):
            return False
        case ast.Lambda():
            return False
        case _:
            return any(_reads(child, names) for child in ast.iter_child_nodes(node))


def _is_for_the_host_alone(statement: ast.stmt, loop: PythonLoop) -> bool:
    """Whether nothing in the loop computes with what a statement reads: it is logged or tested."""
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return True
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    names = set(bound_in(*targets))
    if any(not isinstance(target, ast.Name) for target in targets):
        return False
    for inner in ast.walk(loop.node):
        if isinstance(inner, ast.stmt) and inner is not statement and inner is not loop.node:
            heads = [child for child in ast.iter_child_nodes(inner) if isinstance(child, ast.expr)]
            logs = isinstance(inner, ast.Expr | ast.AugAssign | ast.If)
            if not logs and not names.isdisjoint(read_in(*heads)):
                return False
    return True


RULE.finds_in_module(InLoops(find))
