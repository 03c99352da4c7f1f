"""Rewrite conditions, so that all branches run where one is unknown (`branches.py`).

A statement with branches becomes one `if` after another, each of which asks whether its branch
runs; what they bind is taken from the fork between them. Statements that leave a branch ask first.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from jaxsight.text.names import bound_in_scope
from jaxsight.tracer.dry_runs import nodes

TEST = "__jaxsight_test__"
"""The variable with the value of a condition."""
_ERROR = "__jaxsight_error__"
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

    def leaving(self, how: str, *value: ast.expr) -> ast.expr:
        """Return a call that leaves a branch, if it is one of several that run."""
        return nodes.call("leave", how, self.tried if how == "raise" else self.loop, *value)


def place_in(function: ast.FunctionDef) -> BranchPlace:
    """Return the place of a function's first statements."""
    branching = (n for n in nodes.own_nodes(function.body) if isinstance(n, ast.If | ast.Match))
    inside = (each for node in branching for each in nodes.own_nodes([node]))
    may_return = any(isinstance(each, ast.Return) for each in inside)
    return BranchPlace(may_return=may_return, in_function=True)


class ConditionRewriter(ast.NodeTransformer):
    """Makes the values of expressions unknown that depend on unknown conditions and sizes."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) > 1:
            return node
        kind, right = type(node.ops[0]).__name__, node.comparators[0]
        return nodes.call("compared", kind, node.left, right, at=node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_text = isinstance(node.left, ast.Constant | ast.JoinedStr)
        if is_text or not isinstance(node.op, ast.FloorDiv | ast.Mod):
            return node
        return nodes.call("divided", type(node.op).__name__, node.left, node.right, at=node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._lazily(node, "chosen", node.test, node.body, node.orelse)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return self._lazily(node, "logical", isinstance(node.op, ast.Or), *node.values)

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        if is_movable(node.test):
            node.test = nodes.call("holds", nodes.thunk(node.test), at=node.test)
        return node

    def _lazily(self, node: ast.expr, method: str, *parts: bool | ast.expr) -> ast.AST:
        if not is_movable(node):
            return self.generic_visit(node)
        thunks = (nodes.thunk(self.visit(p)) if isinstance(p, ast.expr) else p for p in parts)
        return nodes.call(method, *thunks, at=node)


def forked(
    node: ast.If | ast.Match,
    branches: list[WrittenBranch],
    test: ast.expr,
    names: list[str],
    roots: list[str],
    place: BranchPlace,
    block: Callable[[list[ast.stmt], BranchPlace], list[ast.stmt]],
) -> list[ast.stmt]:
    """Return the branches of a statement one after another, each if it is to run.

    Args:
        node: the statement.
        branches: its branches.
        test: its condition, or the subject of a `match`, rewritten.
        names: the variables that it binds, or whose objects it may change.
        roots: all variables whose objects it may change.
        place: where it is.
        block: rewrites statements at a place.
    """
    leaves = {type(each) for each in nodes.own_nodes([node])}
    fork = f"__jaxsight_fork_{node.lineno}_{node.col_offset}__"
    listed = [b.condition for b in branches], names, roots, (place.loop, place.tried)
    constants = [ast.Constant(cast("Any", tuple(each))) for each in listed]
    method = "fork" if isinstance(node, ast.If) else "cases"
    opened = nodes.call(method, nodes.name(TEST), *constants, at=test)
    forks = _of(fork, "forks")
    restored = [_restored(each, fork) for each in names]
    made = [tested(test, node), nodes.assign(fork, opened)]
    if isinstance(node, ast.Match):
        made.append(ast.If(ast.UnaryOp(ast.Not(), forks), [_matched(node, fork)], []))
    for index, branch in enumerate(branches):
        body = block(branch.body, replace(place, in_branch=True)) or [ast.Pass()]
        unknown = (nodes.assign(each, nodes.runtime("unknown")) for each in sorted(branch.captures))
        before = [*(restored if index else ()), *unknown]
        enters = ast.Call(_of(fork, "enters"), [ast.Constant(index)], [])
        entered: list[ast.stmt] = [ast.If(forks, before, [])] if before else []
        running = ast.With([ast.withitem(nodes.name(fork))], body)
        made.append(ast.If(enters, [*entered, running], []))
    end = [ast.Expr(ast.Call(_of(fork, "end"), [], [])), *restored]
    end += [
        _left(fork, kind, place)
        for kind in (ast.Return, ast.Break, ast.Continue)
        if kind in leaves and (place.in_function if kind is ast.Return else place.loop)
    ]
    return [nodes.placed(each, node) for each in (*made, ast.If(forks, end, []))]


def tested(test: ast.expr, at: ast.stmt) -> ast.stmt:
    """Return a statement that evaluates a condition, which is unknown if it fails because of us."""
    untested = nodes.assign(TEST, nodes.call("untested", nodes.name(_ERROR), at=at))
    handler = ast.ExceptHandler(nodes.name("BaseException"), _ERROR, [untested])
    return nodes.placed(ast.Try([nodes.assign(TEST, test)], [handler], [], []), at)


def number(node: ast.stmt) -> int:
    """Return a number for a statement, not 0."""
    return node.lineno * 1000 + node.col_offset


def is_movable(node: ast.expr) -> bool:
    """Return whether an expression can be evaluated in a function of its own."""
    return not any(
        isinstance(n, _UNMOVABLE) or (isinstance(n, ast.Name) and n.id in _NOT_MOVED)
        for n in ast.walk(node)
    )


@dataclass(frozen=True, slots=True)
class WrittenBranch:
    """A branch of a statement, as it is written."""

    condition: str
    body: list[ast.stmt]
    captures: frozenset[str] = frozenset()
    """The names that its pattern binds."""


def branches_of(node: ast.If | ast.Match) -> list[WrittenBranch]:
    """Return the branches of a statement; of a `match`, also the one that no pattern matches."""
    if isinstance(node, ast.If):
        text = _text(node.test)
        return [WrittenBranch(f"`{text}`", node.body), WrittenBranch(f"not `{text}`", node.orelse)]
    text = _text(node.subject)
    branches = [
        WrittenBranch(
            f"`{text}` is `{_text(c.pattern)}`", c.body, frozenset(bound_in_scope(c.pattern))
        )
        for c in node.cases
    ]
    last = node.cases[-1]
    if (
        last.guard is None
        and isinstance(last.pattern, ast.MatchAs)
        and last.pattern.pattern is None
    ):
        return branches
    return [*branches, WrittenBranch(f"`{text}` is none of these", [])]


def _matched(node: ast.Match, fork: str) -> ast.stmt:
    """Return a `match` that only says which of its branches runs."""
    cases = [
        ast.match_case(c.pattern, c.guard, [nodes.assign(fork, nodes.call("case", index))])
        for index, c in enumerate(node.cases)
    ]
    return ast.Match(nodes.name(TEST), cases)


def _restored(name: str, fork: str) -> ast.stmt:
    """Return a statement that gives a variable its value in a fork, or none."""
    value = ast.Call(_of(fork, "value"), [ast.Constant(name)], [])
    unbound = nodes.unless_unbound(ast.Delete([ast.Name(name, ast.Del())]))
    return nodes.unless_unbound(nodes.assign(name, value), unbound)


def _left(
    fork: str, kind: type[ast.Return | ast.Break | ast.Continue], place: BranchPlace
) -> ast.stmt:
    """Return a statement that leaves as all branches did."""
    name = kind.__name__.lower()
    is_left = ast.Compare(_of(fork, "leaves"), [ast.Eq()], [ast.Constant(name)])
    leaving = place.leaving(name, _of(fork, "result"))
    if kind is ast.Return:
        return ast.If(is_left, [ast.Return(leaving)], [])
    return ast.If(is_left, [ast.Expr(leaving), kind()], [])


def _of(fork: str, attribute: str) -> ast.expr:
    return ast.Attribute(nodes.name(fork), attribute, nodes.LOAD)


class _Recorded(ast.NodeTransformer):
    """Takes off the calls that record expressions."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        plain = nodes.plain(node)
        return self.generic_visit(node) if plain is node else cast("ast.AST", self.visit(plain))


def _text(node: ast.AST) -> str:
    """Return the source of a condition."""
    return ast.unparse(cast("ast.AST", _Recorded().visit(copy.deepcopy(node))))
