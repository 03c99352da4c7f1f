"""JX455: each iteration of a loop waits for the device, as the host reads a result of the step.

Found in the text alone: a jitted function of the module is called in a Python loop, takes what the
loop made of its results before, and one of its results is read where nothing on the device needs
it: logged, summed up, tested.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

from jaxsight.rules.rule import NodeViolation, Rule
from jaxsight.rules.text.expressions import dotted
from jaxsight.rules.text.jitted import JittedCalls
from jaxsight.rules.text.python_loops import InLoops, PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import written
from jaxsight.rules.wording import quoted
from jaxsight.source.abstract_interpretation.interpreter import (
    AbstractInterpreter,
    AbstractState,
    Loop,
)
from jaxsight.text.names import bound_in, read_in

RULE = Rule(__name__, "Each iteration of a loop waits for the device.", severity="warning")

T = TypeVar("T")
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
    waits = _Waits(scope, calls, loop)
    for node, kind, statement in waits.found if waits.is_carried else ():
        if _is_for_the_host_alone(statement, loop):
            yield NodeViolation(
                ast.copy_location(ast.Constant(None), node),
                f"{quoted(written(node))} waits for the device in every iteration",
                help=_HELP[kind],
                notes=(
                    f"calls of `{waits.step}` run ahead of the device until a value is needed",
                    "then the device is idle until the host has made the next call",
                ),
            )
            return


_HOST, _COMPUTED, _RESULT = 0, 1, 2
"""A value that the host has, one that is computed of a result, and a result of the step."""


class _Waits(AbstractInterpreter[AbstractState[int], int]):
    """Runs an iteration on which of its variables are results of its jitted functions."""

    ITERATIONS = 1

    def __init__(self, scope: NameScope, calls: JittedCalls, loop: PythonLoop) -> None:
        super().__init__(AbstractState())
        self._scope, self._calls = scope, calls
        self.step = ""
        """The jitted function that is called first."""
        self.found: list[tuple[ast.expr, Sync, ast.stmt]] = []
        """What waits in every iteration."""
        self._arguments: set[str] = set()
        self._made: set[str] = set()
        """What the loop makes of results, which the host does not wait for."""
        self._rarely = 0
        """Whether what runs now is not reached in every iteration."""
        self._now: ast.stmt = ast.Pass()
        node = loop.node
        self.run(getattr(node, "body", [each for each, _ in loop.statements]))
        if isinstance(node, ast.While):
            self._rarely, self._now = 0, node
            self.test(node.test)

    @property
    def is_carried(self) -> bool:
        """Whether a call depends on the results of the one before."""
        return not self._arguments.isdisjoint(self._made)

    def statement(self, node: ast.stmt) -> None:
        outer, self._now = self._now, node
        before = len(self.found)
        super().statement(node)
        self._now = node
        match node:
            case ast.Expr(value=ast.Call(func=function) as call) if len(self.found) == before:
                method = function.attr if isinstance(function, ast.Attribute) else ""
                prints = self._scope.full(function) in _PRINTS or method in _PRINTING
                prints = prints or _LOGS.fullmatch(dotted(function)) is not None
                arguments = (*call.args, *(word.value for word in call.keywords))
                shown = (each for each in arguments if prints or isinstance(each, ast.JoinedStr))
                if any(map(self.evaluate, shown)):
                    self._wait(call, "print")
            case ast.If() if any(isinstance(inner, ast.Continue) for inner in ast.walk(node)):
                self._rarely += 1  # until the end
        self._now = outer

    def repeat(self, _node: Loop) -> None:
        """Skip a loop inside, which is looked at by itself."""

    def iterate(self, target: ast.expr, value: int, _iterable: ast.expr) -> None:
        self.bind(target, _RESULT if value else _HOST, None)

    def branch(self, *ways: Callable[[], T]) -> list[T]:
        self._rarely += 1
        values = super().branch(*ways)
        self._rarely -= 1
        return values

    def handle(self, handler: ast.ExceptHandler) -> None:
        self._rarely += 1
        super().handle(handler)
        self._rarely -= 1

    def _wait(self, node: ast.expr, kind: Sync) -> None:
        if not self._rarely:
            self.found.append((node, kind, self._now))

    def either(self, values: Sequence[int]) -> int:
        return max(values, default=_HOST)

    def assign(self, target: ast.expr, value: int, _source: ast.expr | None) -> None:
        for name in bound_in(target):
            if value == _HOST:
                self.state.names.pop(name, None)
            else:
                self._made.add(name)
                self.state.names[name] = max(value, self.state.names.get(name, _HOST))

    def expression(self, node: ast.expr) -> int:
        match node:
            case ast.Name(id=name):
                return _RESULT if self.state.names.get(name) == _RESULT else _HOST
            case ast.Attribute(value=inner, attr=attr):
                return _HOST if attr in _KNOWN else self.evaluate(inner)
            case ast.Lambda():
                return _HOST
            case ast.Call():
                return self._call(node)
            case ast.Subscript():
                return self.either(self.parts(node))
            case _:
                return min(_COMPUTED, self.either(self.parts(node)))

    def _call(self, call: ast.Call) -> int:
        function, full = call.func, self._scope.full(call.func)
        if full in ("len", "isinstance", "type", "id", "hasattr"):
            return _HOST
        of_function = self.evaluate(function)
        given = self.either([self.evaluate(argument) for argument in call.args])
        every = max(of_function, given, *(self.evaluate(word.value) for word in call.keywords))
        called = self._calls.called(self._scope, call)
        if called is not None:
            self.step = self.step or called[0]
            self._arguments.update(read_in(*called[1].traced_arguments(call)))
            return _RESULT
        method = function.attr if isinstance(function, ast.Attribute) else ""
        is_copy = full.startswith("numpy.") and not full.startswith("numpy.testing.")
        if (full in _NUMBERS and given) or (method in _METHODS and of_function):
            self._wait(call, "number")
            return _HOST
        if (is_copy or full == "jax.device_get") and given:
            self._wait(call, "array")
            return _HOST
        match function:
            case ast.Attribute(value=ast.Name(id=name), attr="append") if every:
                self.state.names[name] = _RESULT  # a list of results
        return min(_COMPUTED, every)

    def test(self, node: ast.expr) -> int:
        """Note a test that needs the value of a result."""
        before = len(self.found)
        value = self.evaluate(node)
        if len(self.found) > before or self._compares(node):
            del self.found[before:]
            self._wait(node, "test")
        return value

    def _compares(self, test: ast.expr) -> bool:
        match test:
            case ast.Compare(ops=ops):
                asks = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
                return not isinstance(ops[0], asks) and bool(self.evaluate(test))
            case ast.BoolOp(values=values):
                return any(map(self._compares, values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._compares(operand)
            case ast.Name():
                return bool(self.evaluate(test))
            case ast.Call(func=function):
                full = self._scope.full(function)
                return full.startswith("jax.numpy.is") and bool(self.evaluate(test))
            case _:
                return False


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
