"""The Python loops of a function or a module: what runs in every iteration, and what changes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from jaxsight.rules.rule import ModuleViolation, NodeViolation
from jaxsight.rules.text.expressions import FunctionNode, dotted
from jaxsight.rules.text.jitted import JittedCalls, JittedModule, jitted_module
from jaxsight.rules.text.scope_tree import scopes_of
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import Imports, Statement, blocks_of, imports_of, uses_jax

Loop = ast.For | ast.AsyncFor | ast.While
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
FEW = 8
"""A loop of so few iterations costs little, whatever they do: a choice, as are limits of rules."""


@dataclass(frozen=True, slots=True, eq=False)
class PythonLoop:
    """A loop, with what is in its body and in no loop or function inside of it."""

    node: ast.AST
    """`for`, `while` or a comprehension."""
    around: tuple[PythonLoop, ...] = ()
    """The loops around it in its function, the innermost first."""
    statements: tuple[tuple[ast.stmt, bool], ...] = ()
    """Each with whether every iteration reaches it."""
    counted: frozenset[str] = frozenset()
    """Numbers that differ in all iterations.

    Short loops have none: those that run over a few sizes are often meant to.
    """
    count: int | None = field(default=None)
    """How many iterations there are, where the text says so."""

    @property
    def is_short(self) -> bool:
        """Whether it has few iterations."""
        return self.count is not None and self.count <= FEW

    def expressions(self) -> Iterator[tuple[ast.stmt, ast.expr, bool]]:
        """Yield the expressions of its statements, each with whether every iteration reaches it."""
        for statement, always in self.statements:
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.expr):
                    yield statement, child, always
                elif isinstance(child, ast.withitem):
                    yield statement, child.context_expr, always

    def calls(self) -> Iterator[tuple[ast.stmt, ast.Call, bool]]:
        """Yield the calls in its statements, but those in lambdas and comprehensions."""
        for statement, expression, always in self.expressions():
            for node in evaluated(expression):
                if isinstance(node, ast.Call):
                    yield statement, node, always


def evaluated(expression: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of an expression that are evaluated once with it, the outer ones first."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            waiting.append(node.generators[0].iter)
        elif not isinstance(node, ast.Lambda):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def python_loops(scope: NameScope, body: Sequence[ast.stmt]) -> Iterator[PythonLoop]:
    """Yield the loops of a scope, the outer ones before those inside of them."""
    yield from _loops(scope, body, ())


def _loops(
    scope: NameScope, body: Sequence[ast.stmt], around: tuple[PythonLoop, ...]
) -> Iterator[PythonLoop]:
    for statement in body:
        inside = around
        if isinstance(statement, FunctionNode | ast.ClassDef):
            continue
        if isinstance(statement, _LOOPS):
            loop = _loop(scope, statement, around)
            yield loop
            inside = (loop, *around)
        for block in blocks_of(statement):
            yield from _loops(scope, block, inside)


def _loop(scope: NameScope, node: Loop, around: tuple[PythonLoop, ...]) -> PythonLoop:
    statements = tuple(_own(node.body, always=True))
    counted, count = set[str](), None
    if not isinstance(node, ast.While):
        counted, count = _counters(scope, node.target, node.iter)
    for statement, always in statements:
        match statement:
            case ast.AugAssign(target=ast.Name(id=name)) if always:
                counted.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.BinOp() as value) if always:
                sides = (value.left, value.right)
                if any(isinstance(side, ast.Name) and side.id == name for side in sides) and any(
                    isinstance(side, ast.Constant) for side in sides
                ):
                    counted.add(name)
    return _counting(node, around, statements, counted, count)


def comprehensions(scope: NameScope) -> Iterator[PythonLoop]:
    """Yield the comprehensions of a scope as loops whose body is their element."""
    for node, _ in scope.nodes:
        match node:
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                elements = [node.elt]
            case ast.DictComp():
                elements = [node.key, node.value]
            case _:
                continue
        first = node.generators[0]
        counted, count = _counters(scope, first.target, first.iter)
        body = tuple((ast.Expr(element), not first.ifs) for element in elements)
        yield _counting(node, (), body, counted, count)


def _counting(
    node: ast.AST,
    around: tuple[PythonLoop, ...],
    statements: tuple[tuple[ast.stmt, bool], ...],
    counted: set[str],
    count: int | None,
) -> PythonLoop:
    counted = counted if count is None or count > FEW else set()
    return PythonLoop(node, around, statements, frozenset(counted), count)


def _own(body: Sequence[ast.stmt], *, always: bool) -> Iterator[tuple[ast.stmt, bool]]:
    for statement in body:
        if isinstance(statement, FunctionNode | ast.ClassDef | ast.For | ast.AsyncFor | ast.While):
            continue
        yield statement, always
        match statement:
            case ast.If():
                yield from _own(statement.body, always=False)
                yield from _own(statement.orelse, always=False)
                if any(isinstance(node, ast.Continue) for node in ast.walk(statement)):
                    always = False
            case ast.With() | ast.AsyncWith():
                yield from _own(statement.body, always=always)
            case ast.Try() | ast.TryStar():
                yield from _own(statement.body, always=always)
                yield from _own(statement.orelse, always=always)
                for handler in statement.handlers:
                    yield from _own(handler.body, always=False)
                yield from _own(statement.finalbody, always=always)
            case ast.Match():
                for case in statement.cases:
                    yield from _own(case.body, always=False)


def _counters(
    scope: NameScope, target: ast.expr, iterable: ast.expr
) -> tuple[set[str], int | None]:
    """Return the variables that count, and how many iterations the text says there are."""
    match iterable:
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return set(), len(items)
        case ast.Call(func=function, args=[first, *others]):
            full = scope.full(function)
            last = full.rpartition(".")[2] or dotted(function).rpartition(".")[2]
            match target:
                case ast.Name(id=name) if full == "range" or last in ("trange", "count"):
                    return {name}, _length(iterable) if full == "range" else None
                case ast.Tuple(elts=[ast.Name(id=name), inner]) if full == "enumerate":
                    counters, count = _counters(scope, inner, first)
                    return counters | {name}, count
                case ast.Tuple(elts=targets) if full == "zip":
                    pairs = [
                        _counters(scope, *pair)
                        for pair in zip(targets, (first, *others), strict=False)
                    ]
                    counts = [count for _, count in pairs if count is not None]
                    return set().union(*(names for names, _ in pairs)), min(counts, default=None)
                case _ if last in ("tqdm", "track", "prange"):
                    return _counters(scope, target, first)
        case ast.Call(func=function):
            match target:
                case ast.Name(id=name) if scope.full(function) == "itertools.count":
                    return {name}, None
    return set(), None


def _length(call: ast.Call) -> int | None:
    """Return the length of a `range` of constants."""
    try:
        bounds = [ast.literal_eval(argument) for argument in call.args]
        return len(range(*bounds))
    except (ValueError, TypeError, OverflowError):
        return None


# Rules about the Python loops of a module: what they share.

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
