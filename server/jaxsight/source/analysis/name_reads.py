"""The names of a module that a statement reads while it is executed, or when it is called.

This visits every expression, so it is done only for statements that a slice needs. It does not
follow a name to another statement.
"""

from __future__ import annotations

import ast
import symtable
from collections.abc import Sequence
from dataclasses import dataclass

from jaxsight.source.analysis.early_reads import read_before_bound
from jaxsight.source.analysis.name_effects import NameEffects
from jaxsight.source.analysis.quiet_compiler import quiet
from jaxsight.source.analysis.syntax_trees import blocks_of

_COMPREHENSIONS = frozenset({"listcomp", "setcomp", "dictcomp", "genexpr"})


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
    now |= _augmented(tree.body)
    augmented = _augmented_inside(tree) if "global" in text else frozenset()
    stack = [(child, False) for child in table.get_children()]
    while stack:
        scope, deferred = stack.pop()
        if scope.get_type() == "class":
            for symbol in scope.get_symbols():
                if symbol.is_referenced() and symbol.is_assigned():
                    perhaps.add(symbol.get_name())
        elif scope.get_name() not in _COMPREHENSIONS:
            deferred = True
        for symbol in scope.get_symbols():
            read = symbol.is_referenced() or symbol.get_name() in augmented
            if read and symbol.is_global():
                (later if deferred else now).add(symbol.get_name())
        stack.extend((child, deferred) for child in scope.get_children())
    unsettled = now & bound
    if unsettled and not _reads_before_binding(tree.body):
        now -= unsettled - read_before_bound(tree.body, unsettled)
    return NameReads(
        frozenset(now), frozenset(later), frozenset({*perhaps, *effects.mentions} - now - later)
    )


def _augmented(body: Sequence[ast.stmt]) -> set[str]:
    """Return names that `+=` and the like read and bind: symbol tables report only the binding."""
    names: set[str] = set()
    stack = list(body)
    while stack:
        match stack.pop():
            case ast.AugAssign(target=ast.Name(id=name)):
                names.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                pass
            case statement:
                for block in blocks_of(statement):
                    stack.extend(block)
    return names


def _augmented_inside(tree: ast.Module) -> frozenset[str]:
    """Return these names in functions too: the `global` ones are the module's."""
    return frozenset(
        node.target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
    )


def _reads_before_binding(body: Sequence[ast.stmt]) -> bool:
    """Return whether all reads of a statement come before its first binding.

    So it is for one simple statement or definition.
    """
    return len(body) == 1 and next(blocks_of(body[0]), None) is None
