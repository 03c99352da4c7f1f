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

from jaxsight.source.analysis.name_effects import NameEffects
from jaxsight.source.analysis.syntax_trees import DEFINITIONS, blocks_of, own_nodes, statements_in
from jaxsight.text.names import bound_in_scope
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
        # It parses the text, which warns of invalid escape sequences.
        with quiet():
            table = symtable.symtable(text, "<statement>", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return NameReads()
    bound = {*effects.binds, *effects.may_bind}
    later: set[str] = set()
    perhaps: set[str] = set()
    now = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (symbol.get_name() in bound or not symbol.is_assigned())
    }
    # Symbol tables report only that `+=` binds a name, not that it reads it.
    now.update(_augmented(statements_in(tree.body)))
    # Those of functions are the module's if they are `global`.
    augmented = {*_augmented(ast.walk(tree))} if "global" in text else set()
    stack = [(child, False) for child in table.get_children()]
    while stack:
        scope, deferred = stack.pop()
        if scope.get_type() == "class":
            perhaps |= {
                symbol.get_name()
                for symbol in scope.get_symbols()
                if symbol.is_referenced() and symbol.is_assigned()
            }
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


def read_before_bound(
    body: Iterable[ast.stmt], names: AbstractSet[str], bound: AbstractSet[str] = frozenset()
) -> set[str]:
    """Return those of `names` that executing `body` may read before it binds them.

    A loop variable is bound before it is read; `total` in `total = total + 1` is not. A name that
    may be read first counts as read first, such as one that only a branch binds.

    Args:
        body: statements.
        names: the names that are looked for.
        bound: those of them that are bound before.
    """
    early: set[str] = set()
    known = set(bound)
    for statement in body:
        # A definition may be called at once, as a lambda may be by what it is passed to.
        parts = ast.walk if isinstance(statement, DEFINITIONS) else own_nodes
        for node in (statement, *parts(statement)):
            match node:
                # `del x` raises an error where `x` is not bound, as reading it does.
                case (
                    ast.Name(id=name, ctx=ast.Load() | ast.Del())
                    | ast.AugAssign(target=ast.Name(id=name))
                ):
                    if name in names and name not in known:
                        early.add(name)
        inside = known.union(bound_in_scope(statement, blocks=False))
        blocks = list(blocks_of(statement))
        for block in blocks:
            early |= read_before_bound(block, names, inside)
        # What is bound in a block may not be, and a lone annotation binds nothing.
        if not blocks and getattr(statement, "value", statement) is not None:
            known = inside
    return early
