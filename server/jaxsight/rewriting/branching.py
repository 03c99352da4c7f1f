"""Rewrite conditions, so that all branches run where one is unknown.

A statement with branches becomes one `if` after another, each of which asks whether its branch
runs; what they bind is taken from the fork between them (`tracer/dry_runs/branches.py`). Statements
that leave a branch ask first.
"""

from __future__ import annotations

import ast
from ast import copy_location
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from jaxsight.rewriting import nodes
from jaxsight.rewriting.nodes import assign, name, own_nodes

TEST = "__jaxsight_test__"
"""The variable with the value of a condition."""
_UNMOVABLE = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
_NOT_MOVED = frozenset({"super", "locals", "vars", "dir", "eval", "exec"})
"""Builtins that look at the variables around them."""


@dataclass(frozen=True, slots=True)
class BranchPlace:
    """Where a statement is in its function."""

    loop: int = 0
    """The number of the loop around it; 0 if there is none."""
    tried: int = 0
    """That of the `try` with handlers, whose statements do not survive: the handlers get errors."""
    in_branch: bool = False
    may_return: bool = False
    """Whether the function has branches that return."""
    in_function: bool = False

    @classmethod
    def within(cls, function: nodes.Function) -> Self:
        """Return the place of a function's first statements."""
        branching = (n for n in own_nodes(function.body) if isinstance(n, ast.If))
        inside = (each for node in branching for each in own_nodes([node]))
        may_return = any(isinstance(each, ast.Return) for each in inside)
        return cls(may_return=may_return, in_function=True)

    def leaving(self, how: str, *value: ast.expr) -> ast.expr:
        """Return a call that leaves a branch, if it is one of several that run."""
        return nodes.dry("leave", how, self.tried if how == "raise" else self.loop, *value)

    def returning(self, value: ast.expr) -> ast.stmt:
        """Return a statement that returns a value."""
        return ast.Return(self.leaving("return", value) if self.may_return else value)


class Forking:
    """A statement whose branches run one after another, each if it is to run."""

    def __init__(
        self,
        node: ast.If,
        names: list[str],
        roots: list[str],
        place: BranchPlace,
        number: int,
    ) -> None:
        """Read a statement before it is rewritten.

        Args:
            node: the statement.
            names: the variables that it binds, or whose objects it may change.
            roots: all variables whose objects it may change.
            place: where it is.
            number: its number.
        """
        self._node, self._names, self._roots, self._place = node, names, roots, place
        self._fork = f"__jaxsight_fork_{number}__"
        self._text = ast.unparse(node.test)  # before it is rewritten
        self._leaves = {type(each) for each in own_nodes([node])}

    def statements(self) -> list[ast.stmt]:
        """Return what the statement becomes after its parts were rewritten in place.

        No node is in it twice, as its lines are moved later.
        """
        node = self._node
        conditions = (f"`{self._text}`", f"not `{self._text}`")
        made = [tested(node.test, node), assign(self._opened(conditions), self._fork)]
        for index, body in enumerate((node.body, node.orelse)):
            if index and self._names:
                made.append(ast.If(self._of("forks"), [*self._restored()], []))
            running = ast.With([ast.withitem(name(self._fork))], body or [ast.Pass()])
            made.append(ast.If(nodes.call(self._of("enters"), index), [running], []))
        end = [ast.Expr(nodes.call(self._of("end"))), *self._restored(), *self._left()]
        return [copy_location(each, node) for each in (*made, ast.If(self._of("forks"), end, []))]

    def _opened(self, conditions: Iterable[str]) -> ast.expr:
        place = self._place.loop, self._place.tried
        names = map(nodes.constants, (conditions, self._names, self._roots))
        opened = nodes.dry("fork", name(TEST), *names, nodes.constants(place))
        return copy_location(opened, self._node.test)

    def _restored(self) -> Iterator[ast.stmt]:
        """Yield statements that give the variables their values in a fork, or none."""
        for each in self._names:
            value = nodes.call(self._of("value"), each)
            unbound = nodes.unless_unbound(ast.Delete([ast.Name(each, ast.Del())]))
            yield nodes.unless_unbound(assign(value, each), unbound)

    def _left(self) -> list[ast.stmt]:
        """Return statements that leave as all branches did."""
        place, left = self._place, list[ast.stmt]()
        for kind in (ast.Return, ast.Break, ast.Continue):
            is_return, how = kind is ast.Return, kind.__name__.lower()
            if kind in self._leaves and (place.in_function if is_return else place.loop):
                leaving = place.leaving(how, self._of("result"))
                leave: list[ast.stmt] = [ast.Return(leaving)]
                if not is_return:
                    leave = [ast.Expr(leaving), kind()]
                is_left = ast.Compare(self._of("leaves"), [ast.Eq()], [ast.Constant(how)])
                left.append(ast.If(is_left, leave, []))
        return left

    def _of(self, attribute: str) -> ast.expr:
        return ast.Attribute(name(self._fork), attribute, nodes.LOAD)


def tested(test: ast.expr, at: ast.stmt) -> ast.stmt:
    """Return a statement that evaluates a condition, which is unknown if it fails because of us."""
    untested = assign(nodes.dry("untested", name(nodes.ERROR)), TEST)
    return nodes.tried(at, [assign(test, TEST)], [untested])


def is_movable(node: ast.expr) -> bool:
    """Return whether an expression can be evaluated in a function of its own."""
    return not any(
        isinstance(n, _UNMOVABLE) or (isinstance(n, ast.Name) and n.id in _NOT_MOVED)
        for n in ast.walk(node)
    )
