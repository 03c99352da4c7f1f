"""Which lines an earlier trace still describes after an edit that cannot be traced.

The last successful trace of a function is shown while its newest one fails, but only where it can
still be valid: not at the failing expression, at a changed statement, or at anything computed from
either. Names are followed through the text, within functions and between them; if the text does not
decide, the line is dropped.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from jaxsight.source.analysis.statement_facts import StatementFacts, facts_of, with_inner
from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import tree_of

_PASSES = 20
"""Passes over the text to propagate errors: chains of functions are shorter."""
_CHUNKS_KEPT = 256
"""Chunks whose statements are kept: those of a file."""
_WORD = re.compile(r"[^\W\d]\w*")

Names = Mapping[str, Collection[str]]
"""Names by the scope that binds them.

A scope is `f.<locals>.` for a function, `C.` for a class, and empty for the module.
"""


def lost_lines(
    chunks: Iterable[ModuleChunk],
    traced: str,
    failing: Collection[int],
    stands: Callable[[int], bool],
    lost: Names,
) -> frozenset[int]:
    """Return the lines of `chunks` that an earlier trace no longer describes.

    Args:
        traced: the name of the traced function, which need not be called in the text.
        failing: lines at which the newest trace failed, and of the calls that led there.
        stands: returns whether a line of the text is unchanged since it was traced.
        lost: names whose earlier values are gone: of removed statements and changed arguments.
    """
    valid = [chunk for chunk in chunks if chunk.broken is None]
    read = [(chunk.first_line, _statements(chunk.text)) for chunk in valid]
    lines = (line for chunk in valid for line in range(chunk.first_line, chunk.last_line + 1))
    flow = _Flow({*failing, *(line for line in lines if not stands(line))}, lost)
    for _ in range(_PASSES):
        before = flow.size()
        flow.mentioned, flow.relied_on = set(), set()
        scopes = [_Scope("", first_line, flow.globals, None) for first_line, _ in read]
        for scope, (_, statements) in zip(scopes, read, strict=True):
            flow.body(statements, scope)
        for scope in scopes:
            flow.functions(scope)
        flow.uncalled |= flow.mentioned - flow.relied_on - {traced}
        if flow.size() == before:
            break
    return frozenset(flow.lines)


def names_bound(
    chunks: Iterable[ModuleChunk], stands: Callable[[int], bool]
) -> dict[str, set[str]]:
    """Return the names, by scope, that statements bind with a line for which `stands` is false."""
    names: dict[str, set[str]] = {}
    for chunk in chunks:
        if chunk.broken is None:
            for scope, statement in with_inner(_statements(chunk.text), ""):
                if not all(stands(line + chunk.first_line) for line in statement.head):
                    names.setdefault(scope, set()).update(statement.bound)
    return names


@functools.lru_cache(maxsize=_CHUNKS_KEPT)
def _statements(text: str) -> tuple[StatementFacts, ...]:
    """Return the statements of a chunk.

    If they are nested too deeply, this is one statement that reads and binds all words in it.
    """
    try:
        return tuple(facts_of(statement) for statement in tree_of(text).body)
    except RecursionError:
        words = frozenset(_WORD.findall(text))
        return (StatementFacts(range(text.count("\n") + 1), words, frozenset(), words, words),)


@dataclass(slots=True)
class _Scope:
    """A scope: `own` names are bound here, the values of `lost` names depend on an error."""

    name: str
    first_line: int
    lost: set[str]
    outer: _Scope | None
    own: frozenset[str] = frozenset()
    sure: bool = True
    """Whether its statements always run with the scope, so that a binding replaces the value."""
    looping: bool = False
    """Whether an enclosing loop is already visited twice."""
    functions: dict[int, StatementFacts] = field(default_factory=dict)
    """Functions defined here, by line: in their calls captured names have their last values."""

    def has_lost(self, name: str) -> bool:
        if name in self.lost or name in self.own or self.outer is None:
            return name in self.lost
        return self.outer.has_lost(name)


@dataclass(slots=True)
class _Flow:
    """The lines, names and functions known so far to depend on an error."""

    wrong: set[int]
    """Lines that fail or were changed."""
    gone: Names
    globals: set[str] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)
    results: set[str] = field(default_factory=set)
    """Functions whose results depend on an error."""
    uncalled: set[str] = field(default_factory=set)
    """Functions that are only called with arguments that depend on an error."""
    mentioned: set[str] = field(default_factory=set)
    relied_on: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.globals |= set(self.gone.get("", ()))

    def size(self) -> tuple[int, ...]:
        """Return sizes that grow until nothing new is found."""
        return len(self.globals), len(self.lines), len(self.results), len(self.uncalled)

    def body(self, statements: Iterable[StatementFacts], scope: _Scope) -> None:
        for statement in statements:
            read = statement.names | statement.attributes
            by_itself = any(
                line + scope.first_line in self.wrong for line in statement.head
            ) or any(scope.has_lost(name) for name in statement.names)
            by_calls = self.results & read
            is_lost = by_itself or bool(by_calls)
            if not is_lost:
                self.relied_on |= read
            elif by_itself:
                self.mentioned |= read
            else:
                # A function whose result is lost may still be called with valid arguments.
                self.relied_on |= by_calls
                self.mentioned |= read - by_calls
            if is_lost:
                self._mark_lost(statement, scope)
            elif scope.sure:
                scope.lost.difference_update(statement.replaced)
            if statement.function:
                scope.functions[statement.head.start] = statement
            elif statement.scope:
                inner = _Scope(scope.name + statement.scope, scope.first_line, set(), scope)
                self.body(statement.blocks[0], inner)
                self.functions(inner)
            elif statement.blocks:
                self._nested(statement, scope, is_lost)

    def _mark_lost(self, statement: StatementFacts, scope: _Scope) -> None:
        """Mark a statement and the names that it binds as lost."""
        self.lines.update(line + scope.first_line for line in statement.head)
        scope.lost.update(statement.bound)
        if statement.returns:
            # `layer` for `Model.layer.<locals>.`
            function = scope.name.removesuffix(".").removesuffix(".<locals>")
            self.results.add(function.rpartition(".")[2])

    def functions(self, scope: _Scope) -> None:
        """Visit the bodies of a scope's functions, after all of its own statements."""
        # A function sees the last values of the names around it, so these come first.
        for function in scope.functions.values():
            name = scope.name + function.scope
            lost = {*self.gone.get(name, ())}
            if function.function in self.uncalled:
                lost |= function.parameters
                self.lines.update(line + scope.first_line for line in function.head)
            inner = _Scope(name, scope.first_line, lost, scope, function.own)
            self.body(function.blocks[0], inner)
            self.functions(inner)

    def _nested(self, statement: StatementFacts, scope: _Scope, is_lost: bool) -> None:
        """Visit the blocks of a compound statement; lose them with its condition or iterable."""
        inner = replace(
            scope,
            sure=scope.sure and not statement.decides,
            looping=scope.looping or statement.loops,
        )
        # Twice: the second time with what the end of the first one has lost.
        for _ in range(2 if statement.loops and not scope.looping else 1):
            for block in statement.blocks:
                self.body(block, inner)
        if is_lost and statement.decides:
            for block in statement.blocks:
                for _, decided in with_inner(block, ""):
                    self._mark_lost(decided, inner)
