"""Run Python code on states: statements in order, branches joined, loops to a fixed point."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Generic, Self, TypeVar

from jaxsight.text.names import bound_in
from jaxsight.text.parsing import FunctionNode

# States of the abstract interpreter: what is known of variables at one point of the code.


V = TypeVar("V")


@dataclass(slots=True)
class AbstractState(Generic[V]):
    """A value for each variable; a variable that is not there is unknown."""

    names: dict[str, V] = field(default_factory=dict)
    """By path: `state`, `state.params`, `buffers[0]`."""

    def copy(self) -> Self:
        """Return a state that changes by itself."""
        return type(self)(dict(self.names))

    def join(self, other: Self) -> Self:
        """Return what is known of variables whichever of two ways was gone."""
        joined = self.copy()
        for path in self.names.keys() | other.names.keys():
            value = self.either(path, self.names.get(path), other.names.get(path))
            if value is None:
                joined.names.pop(path, None)
            else:
                joined.names[path] = value
        return joined

    def either(self, _path: str, one: V | None, other: V | None) -> V | None:
        """Return the join of two values of a variable; `None` is for no value.

        Here, a variable that one way alone binds is bound: the other would raise an error.
        """
        if one is None or other is None or one == other:
            return other if one is None else one
        return one | other  # type: ignore[operator,no-any-return]  # sets, unless overridden

    def forget(self, path: str) -> None:
        """Drop what is known of a variable, and of what is in it."""
        inside = (f"{path}.", f"{path}[")
        for key in [key for key in self.names if key == path or key.startswith(inside)]:
            del self.names[key]


_DEEPEST = 5
"""Loops in one another that run to a fixed point, a choice: each multiplies the times that the
innermost body runs, and code nests three at most. Deeper ones run once."""

Loop = ast.For | ast.AsyncFor | ast.While
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


T = TypeVar("T")
S = TypeVar("S", bound=AbstractState)  # type: ignore[type-arg]


@dataclass(slots=True)
class _Exits(Generic[S]):
    """The states in which an iteration of a loop ends before its end."""

    breaks: list[S] = field(default_factory=list)
    continues: list[S] = field(default_factory=list)


class AbstractInterpreter(Generic[S, V]):
    """Runs statements on a state; a client says what expressions and assignments do."""

    ITERATIONS: ClassVar[int] = 6
    """How often a loop's body runs at most; a choice: what an iteration tells travels through so
    many variables. Most loops reach a fixed point with the second one."""
    SKIPS_LOOPS: ClassVar[bool] = True
    """Whether a loop may have no iteration."""

    def __init__(self, state: S) -> None:
        self.state = state
        self.is_reached = True
        """Whether code runs on; after a `return`, none does."""
        self.returned: list[V] = []
        """What the code returns."""
        self.loops: list[Loop | Comprehension] = []
        """The loops around what runs now, the innermost last."""
        self._exits: list[_Exits[S]] = []

    # The transfer functions.

    @abstractmethod
    def expression(self, node: ast.expr) -> V:
        """Return the value of an expression, whose parts are evaluated in order."""

    @abstractmethod
    def assign(self, target: ast.expr, value: V, source: ast.expr | None) -> None:
        """Bind a variable, an attribute or an item.

        `source` is the expression that has the value; `None` where none has, as for `for`.
        """

    @abstractmethod
    def either(self, values: Sequence[V]) -> V:
        """Return what is known of one of several values, of none too."""

    def test(self, node: ast.expr) -> V:
        """Return the value of the condition of a branch."""
        return self.evaluate(node)

    def unpacked(
        self, value: V, targets: Sequence[ast.expr], _source: ast.expr | None
    ) -> Sequence[V]:
        """Return the values of several targets of an assignment."""
        return [value] * len(targets)

    def iterate(self, target: ast.expr, value: V, _iterable: ast.expr) -> None:
        """Bind what iterating over an expression, which has a value, yields."""
        self.bind(target, value, None)

    def augmented(self, _node: ast.AugAssign, old: V, new: V) -> V:
        """Return what a variable is after `x += y`."""
        return self.either([old, new])

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Define a function or class."""

    def imports(self, node: ast.Import | ast.ImportFrom) -> None:
        """Import modules or names."""

    def delete(self, target: ast.expr) -> None:
        """Delete a variable, an attribute or an item."""

    # Statements.

    def run(self, body: Iterable[ast.stmt]) -> None:
        """Run statements in order, as far as they are reached."""
        for statement in body:
            if not self.is_reached:
                return
            self.statement(statement)

    def run_function(self, function: FunctionNode) -> V:
        """Run a function's body, whose parameters are bound, and return what it returns."""
        if isinstance(function, ast.Lambda):
            return self.evaluate(function.body)
        self.run(function.body)
        return self.either(self.returned)

    def statement(self, node: ast.stmt) -> None:
        """Run a statement."""
        match node:
            case ast.Expr(value=value):
                self.evaluate(value)
            case ast.Assert(test=test):
                self.test(test)
            case ast.Assign(targets=targets, value=value):
                result = self.evaluate(value)
                for target in targets:
                    self.bind(target, result, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.bind(target, self.evaluate(value), value)
            case ast.AugAssign(target=target, value=value):
                old, new = self.evaluate(target), self.evaluate(value)
                self.bind(target, self.augmented(node, old, new), None)
            case ast.Delete(targets=targets):
                for target in targets:
                    self.delete(target)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.define(node)
            case ast.Import() | ast.ImportFrom():
                self.imports(node)
            case ast.Return(value=value):
                if value is not None:
                    self.returned.append(self.evaluate(value))
                self.is_reached = False
            case ast.Raise(exc=error):
                if error is not None:
                    self.evaluate(error)
                self.is_reached = False
            case ast.Break() | ast.Continue():
                # The parser accepts `break` outside of loops; only the compiler refuses it.
                exits = self._exits[-1] if self._exits else _Exits()
                ends = exits.breaks if isinstance(node, ast.Break) else exits.continues
                ends.append(self.state)
                self.is_reached = False
            case ast.If(test=test, body=body, orelse=orelse):
                self.test(test)
                self.branch(lambda: self.run(body), lambda: self.run(orelse))
            case ast.Match(subject=subject, cases=cases):
                matched = self.evaluate(subject)
                self.branch(*(self._case(case, matched) for case in cases), lambda: None)
            case ast.For() | ast.AsyncFor() | ast.While():
                self.repeat(node)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                for entered in items:
                    result = self.evaluate(entered.context_expr)
                    if entered.optional_vars is not None:
                        self.bind(entered.optional_vars, result, None)
                self.run(body)
            case ast.Try() | ast.TryStar():
                self.attempt(node)

    def _case(self, case: ast.match_case, value: V) -> Callable[[], None]:
        def way() -> None:
            for name in bound_in(case.pattern):
                bound = ast.copy_location(ast.Name(name, ast.Store()), case.pattern)
                self.assign(bound, value, None)
            if case.guard is not None:
                self.test(case.guard)
            self.run(case.body)

        return way

    def branch(self, *ways: Callable[[], T]) -> list[T]:
        """Go each of several ways from here; afterwards, what holds is what holds after any."""
        before, ends, values = self.state, list[S | None](), list[T]()
        for way in ways:
            self.state, self.is_reached = before.copy(), True
            values.append(way())
            ends.append(self._end)
        self._go_on(ends)
        return values

    @property
    def _end(self) -> S | None:
        """The state here, if code runs on."""
        return self.state if self.is_reached else None

    def _go_on(self, ends: Iterable[S | None]) -> None:
        """Run on from where several ways lead."""
        reached = [end for end in ends if end is not None]
        self.is_reached = bool(reached)
        if reached:
            self.state, *others = reached
            for other in others:
                self.state = self.state.join(other)

    def repeat(self, node: Loop) -> None:
        """Run a loop until an iteration tells nothing new.

        The first iteration begins with what was known before alone: what it does has certainly been
        done when the others begin, which a join with the state before would forget.
        """
        test = node.test if isinstance(node, ast.While) else None
        # `while True` ends by `break`, `return` or an error alone.
        is_endless = isinstance(test, ast.Constant) and bool(test.value)
        value = self.evaluate(node.test if isinstance(node, ast.While) else node.iter)
        skipped = self.state.copy()
        head: S | None = None
        exits = _Exits[S]()
        is_deep = len(self.loops) >= _DEEPEST
        self.loops.append(node)
        self._exits.append(exits)
        for _ in range(1 if is_deep else self.ITERATIONS):
            if not isinstance(node, ast.While):
                self.iterate(node.target, value, node.iter)
            self.run(node.body)
            self._go_on([self._end, *exits.continues])
            exits.continues.clear()
            if not self.is_reached:
                break
            if test is not None:
                self.evaluate(test)
            before, head = head, self.state if head is None else head.join(self.state)
            if head == before:
                break
            self.state = head.copy()
        self._exits.pop()
        self.loops.pop()
        ends = [] if is_endless else [self._end]
        # A loop whose body never ends by itself has none but its `break`, or was skipped.
        if not is_endless and (self.SKIPS_LOOPS or not (self.is_reached or exits.breaks)):
            ends.append(skipped)
        self._go_on(ends)
        self.run(node.orelse)
        self._go_on([self._end, *exits.breaks])

    def attempt(self, node: ast.Try | ast.TryStar) -> None:
        """Run a `try` statement: an error may come before any statement of its body, or after."""
        before = self.state.copy()
        self.run(node.body)
        raised = before if not self.is_reached else before.join(self.state)
        self.run(node.orelse)
        ends = [self._end]
        for handler in node.handlers:
            self.state, self.is_reached = raised.copy(), True
            self.handle(handler)
            ends.append(self._end)
        goes_on = any(end is not None for end in ends)
        self._go_on(ends if goes_on else [raised])
        # It runs also where an error or a `return` goes on afterwards.
        self.run(node.finalbody)
        self.is_reached &= goes_on

    def handle(self, handler: ast.ExceptHandler) -> None:
        """Run what handles an error."""
        if handler.type is not None:
            error = self.evaluate(handler.type)
            if handler.name is not None:
                name = ast.copy_location(ast.Name(handler.name, ast.Store()), handler)
                self.assign(name, error, None)
        self.run(handler.body)

    # Expressions and targets.

    def evaluate(self, node: ast.expr) -> V:
        """Return the value of an expression.

        Those that bind variables or branch are evaluated here, others by `expression`.
        """
        match node:
            case ast.NamedExpr(target=target, value=inner):
                value = self.evaluate(inner)
                self.bind(target, value, inner)
                return value
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self.test(test)
                ways = (lambda: self.evaluate(body)), (lambda: self.evaluate(orelse))
                return self.either(self.branch(*ways))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                return self.comprehension(node)
            case _:
                return self.expression(node)

    def parts(self, node: ast.AST) -> list[V]:
        """Return the values of the expressions in a node, which are evaluated in order."""
        values: list[V] = []
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                values.append(self.evaluate(child))
            elif isinstance(child, ast.keyword):
                values.append(self.evaluate(child.value))
        return values

    def comprehension(self, node: Comprehension) -> V:
        """Return the value of a comprehension's element; its variables are its own."""
        # Since Python 3 a comprehension has a scope of its own, but `:=` in it binds outside (PEP
        # 572).
        targets = {name for each in node.generators for name in bound_in(each.target)}
        hidden = {name: self.state.names.get(name) for name in targets}
        for generator in node.generators:
            self.iterate(generator.target, self.evaluate(generator.iter), generator.iter)
            self.loops.append(node)
            for condition in generator.ifs:
                self.test(condition)
        elements = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        value = self.either([self.evaluate(element) for element in elements])
        del self.loops[-len(node.generators) :]
        for name, before in hidden.items():
            self.state.forget(name)
            if before is not None:
                self.state.names[name] = before
        return value

    def bind(self, target: ast.expr, value: V, source: ast.expr | None) -> None:
        """Bind a target; each of several to its part."""
        match target:
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                sources: Sequence[ast.expr | None] = [None] * len(targets)
                match source:
                    case ast.Tuple(elts=parts) | ast.List(elts=parts):
                        if len(parts) == len(targets):
                            sources = parts
                values = self.unpacked(value, targets, source)
                for inner, part, each in zip(targets, values, sources, strict=True):
                    self.bind(inner, part, each)
            case ast.Starred(value=inner):
                self.bind(inner, value, None)
            case _:
                self.assign(target, value, source)
