"""The statements of a module's top level, identified by their text.

Results that are needed repeatedly are cached in the statement, and all users of the same text share
the statement, so an edit costs only the statements that it touches. Syntax trees are not kept: they
are much larger than the text. Nothing here may depend on a statement's place.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import weakref
from dataclasses import dataclass

from jaxsight.source import limits
from jaxsight.source.analysis.name_effects import NameEffects, guessed_name_effects, name_effects_of
from jaxsight.source.analysis.name_reads import NameReads, name_reads_of
from jaxsight.source.analysis.side_effects import SideEffects, effects_of_call
from jaxsight.source.analysis.syntax_digest import digest
from jaxsight.source.definitions import Function, functions_in
from jaxsight.source.text import Position, Range
from jaxsight.text.parsing import parse

_TREES_KEPT = 64
"""Syntax trees that are kept, those around an edit: they are many times larger than their text."""
_CONSTANTS = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop, ast.Load)
_ELSEWHERE = re.compile(r" \(detected at line \d+\)| on line \d+")
"""Line numbers in Python's messages: they count from its start, and the range is more precise."""


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a text does not parse, and where."""

    range: Range
    message: str
    too_large: bool = False
    """The text exceeds a limit (see `limits`): it may be valid."""


@dataclass(frozen=True, eq=False)
class TopLevelStatement:
    """A statement's text and its properties. Ranges count from its first line.

    `id` is 16 hex digits that identify the text. `lines_used` is the number of lines of its
    statements (the text may have comments after them); 0 if broken.
    """

    text: str
    id: str
    broken: SyntaxProblem | None
    functions: tuple[Function, ...]
    name_effects: NameEffects
    lines_used: int

    @functools.cached_property
    def meaning(self) -> str:
        """A digest of the syntax tree without comments and docstrings; of the text if broken."""
        if self.broken is not None:
            return self.id
        return digest(tree_of(self.text), docstrings=False)

    @functools.cached_property
    def meaning_with_docstrings(self) -> str:
        """As `meaning`, with docstrings."""
        if self.broken is not None:
            return self.id
        return digest(tree_of(self.text), docstrings=True)

    @functools.cached_property
    def reads(self) -> NameReads:
        """The module's names that the statement uses; none if broken."""
        if self.broken is not None:
            return NameReads()
        return name_reads_of(self.text, self.name_effects, tree_of(self.text))

    @functools.cached_property
    def effects_of_call(self) -> SideEffects:
        """The effects of calling the function that the statement defines; unknown without one."""
        if self.broken is None:
            match tree_of(self.text).body:
                case [ast.FunctionDef() as function]:
                    return effects_of_call(function)
                case [ast.Assign(value=ast.Lambda() as function)]:
                    return effects_of_call(function)
        return SideEffects(opaque="a value")

    @functools.cached_property
    def binds_constant(self) -> bool:
        """Whether the statement assigns a number, a string, or a tuple of these."""
        match tree_of(self.text).body if self.broken is None else []:
            case [ast.Assign(value=value)]:
                return all(isinstance(node, _CONSTANTS) for node in ast.walk(value))
        return False

    @functools.cached_property
    def line_count(self) -> int:
        """The number of lines of the text.

        A line end at its end, which only a backslash before it leaves there, does not count.
        """
        return self.text.count("\n") + (not self.text.endswith("\n"))


# Weak: a text that no open module holds any more takes no memory, however much was typed.
_statements: weakref.WeakValueDictionary[str, TopLevelStatement] = weakref.WeakValueDictionary()


def statement_of(text: str) -> TopLevelStatement:
    """Return the statement with this text; it is shared while any module holds it."""
    statement = _statements.get(text)
    if statement is None:
        statement = _statements[text] = _new_statement(text)
    return statement


def _new_statement(text: str) -> TopLevelStatement:
    # An editor may send lone surrogates, which strict UTF-8 refuses.
    id = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    if reason := limits.statement_problem(text):
        problem = SyntaxProblem(first_line(text), reason, too_large=True)
        return TopLevelStatement(text, id, problem, (), guessed_name_effects(text), 0)
    try:
        tree = tree_of(text)
        used = tree.body[-1].end_lineno or 0 if tree.body else 0
        return TopLevelStatement(
            text, id, None, functions_in(tree, text), name_effects_of(tree, text), used
        )
    except SyntaxError as error:
        problem = _problem(error, text)
    # CPython raises the second one where its parser runs out of its own stack.
    except (RecursionError, MemoryError):
        problem = SyntaxProblem(first_line(text), "too deeply nested to be read")
    except ValueError as error:
        problem = SyntaxProblem(first_line(text), str(error))
    return TopLevelStatement(text, id, problem, (), guessed_name_effects(text), 0)


@functools.lru_cache(maxsize=_TREES_KEPT)
def tree_of(text: str) -> ast.Module:
    """Return the syntax tree of a statement's text. It is shared and must not be changed.

    Raises:
        SyntaxError: (or ValueError, RecursionError, MemoryError) it does not parse.
    """
    return parse(text)


def _problem(error: SyntaxError, text: str) -> SyntaxProblem:
    lines = text.split("\n")
    line = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    column = min(max((error.offset or 1) - 1, 0), len(lines[line]))
    start = Position(line, column)
    # Python counts both from 1, and has 0 or -1 where it knows no end (`x = (`, an unexpected
    # indent).
    end = Position((error.end_lineno or 0) - 1, (error.end_offset or 0) - 1)
    if not (start < end and end.line < len(lines) and end.column <= len(lines[end.line])):
        end = Position(line, min(column + 1, len(lines[line])))
    return SyntaxProblem(Range(start, end), _ELSEWHERE.sub("", error.msg or "invalid syntax"))


def first_line(text: str) -> Range:
    """Return the range of the first line of a text."""
    return Range(Position(0, 0), Position(0, len(text.partition("\n")[0])))
