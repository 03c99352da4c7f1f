"""The names of a module that a statement reads while it is executed, or when it is called.

This visits every expression, so it is done only for statements that a slice needs. It does not
follow a name to another statement.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from jaxsight.source.analysis.name_effects import NameEffects
from jaxsight.source.analysis.syntax_trees import blocks_of, statements_in
from jaxsight.text.names import bound_by, bound_in, bound_in_scope
from jaxsight.text.parsing import quiet

_RUN_AT_ONCE = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr", "__annotate__"})
"""Scopes that do not wait for a call: comprehensions, and annotations, which Python 3.14 gives a
scope (PEP 649). Older Pythons evaluate them at once, and the module may be run by one of them.
"""


_OF_THE_COMPILER = frozenset({"__conditional_annotations__"})
"""Names that Python 3.14 adds to the symbol table of a module with annotations."""


@dataclass(frozen=True, slots=True)
class NameReads:
    """The module's names that a statement uses: when it is executed (`now`), or in calls (`later`).

    `perhaps` are names that may also refer to something else, such as a class's own attribute: they
    matter only if the module binds them.
    """

    now: frozenset[str] = frozenset()
    later: frozenset[str] = frozenset()
    perhaps: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        return self.now | self.later | self.perhaps


def name_reads_of(text: str, effects: NameEffects, tree: ast.Module) -> NameReads:
    """Return the module's names that a statement needs.

    A text that does not compile needs none.
    """
    try:
        with quiet():
            table = symtable.symtable(text, "<statement>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return NameReads()
    bound = {*effects.binds, *effects.may_bind}
    now: set[str] = set()
    later: set[str] = set()
    perhaps: set[str] = set()
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if symbol.is_referenced() and (name in bound or not symbol.is_assigned()):
            now.add(name)
    # Symbol tables report only that `+=` binds a name, not that it reads it.
    now.update(_augmented(statements_in(tree.body)))
    # Those of functions are the module's if they are `global`.
    augmented = {*_augmented(ast.walk(tree))} if "global" in text else set()
    stack = [(child, False) for child in table.get_children()]
    while stack:
        scope, deferred = stack.pop()
        if scope.get_type() == "class":
            for symbol in scope.get_symbols():
                if symbol.is_referenced() and symbol.is_assigned():
                    perhaps.add(symbol.get_name())
        elif scope.get_name() not in _RUN_AT_ONCE:
            deferred = True
        for symbol in scope.get_symbols():
            read = symbol.is_referenced() or symbol.get_name() in augmented
            if read and symbol.is_global():
                (later if deferred else now).add(symbol.get_name())
        stack.extend((child, deferred) for child in scope.get_children())
    now -= _OF_THE_COMPILER
    later -= _OF_THE_COMPILER
    unsettled = now & bound
    # One simple statement or definition reads before it binds.
    is_simple = len(tree.body) == 1 and next(blocks_of(tree.body[0]), None) is None
    if unsettled and not is_simple:
        now -= unsettled - read_before_bound(tree.body, unsettled)
    return NameReads(
        frozenset(now), frozenset(later), frozenset({*perhaps, *effects.mentions} - now - later)
    )


def _augmented(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name


def read_before_bound(body: Iterable[ast.stmt], names: AbstractSet[str]) -> set[str]:
    """Return those of `names` that executing `body` may read before it binds them.

    A loop variable is bound before it is read; `total` in `total = total + 1` is not. A name that
    may be read first counts as read first.
    """
    reader = _Reader(names)
    reader.block(body, set())
    return reader.early


class _Reader:
    """Reads statements with the names that are bound before them."""

    def __init__(self, names: AbstractSet[str]) -> None:
        self.names: Final = names
        self.early: set[str] = set()

    def block(self, body: Iterable[ast.stmt], bound: set[str]) -> set[str]:
        """Read a block that begins with `bound`; return the names certainly bound after it."""
        bound = set(bound)
        for statement in body:
            bound |= self.statement(statement, bound)
        return bound

    def statement(self, statement: ast.stmt, bound: set[str]) -> set[str]:
        """Read a statement; return the names that it certainly binds."""
        match statement:
            case ast.Assign(targets=targets):
                self.read(statement, bound)
                return set(bound_in(*targets))
            case ast.AnnAssign(target=target, value=value):
                self.read(statement, bound)
                return set(bound_in(target)) if value is not None else set()
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self.see(name, bound)
                self.read(value, bound)
                return {name}
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self.read(statement, bound)
                return {statement.name}
            case ast.Import() | ast.ImportFrom():
                return set(bound_in_scope(statement))
            case ast.For() | ast.AsyncFor():
                self.read(statement.iter, bound)
                self.read(statement.target, bound)
                self.block(statement.body, bound.union(bound_in(statement.target)))
                self.block(statement.orelse, bound)
                return set()
            case ast.If(test=test, body=body, orelse=orelse):
                self.read(test, bound)
                return self.block(body, bound) & self.block(orelse, bound)
            case ast.With() | ast.AsyncWith():
                inside = set(bound)
                for context in statement.items:
                    self.read(context, inside)
                    inside.update(bound_in(context.optional_vars) if context.optional_vars else ())
                return self.block(statement.body, inside)
            case ast.Try() | ast.TryStar():
                after = self.block(statement.body, bound)
                for handler in statement.handlers:
                    if handler.type is not None:
                        self.read(handler.type, bound)
                    self.block(handler.body, bound.union(bound_by(handler)))
                self.block(statement.orelse, after)
                return self.block(statement.finalbody, bound)
            case ast.Match(subject=subject, cases=cases):
                self.read(subject, bound)
                for case in cases:
                    self.read(case.pattern, bound)
                    inside = bound.union(bound_in(case.pattern))
                    if case.guard is not None:
                        self.read(case.guard, inside)
                    self.block(case.body, inside)
                return set()
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.read(child, bound)
        for block in blocks_of(statement):
            self.block(block, bound)
        return set()

    def read(self, node: ast.AST, bound: set[str]) -> None:
        for inner in ast.walk(node):
            match inner:
                case ast.Name(id=name, ctx=ast.Load() | ast.Del()):
                    self.see(name, bound)

    def see(self, name: str, bound: set[str]) -> None:
        if name in self.names and name not in bound:
            self.early.add(name)
