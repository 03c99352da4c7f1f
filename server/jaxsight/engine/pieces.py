"""A piece of a module's top level, known by its text alone: one statement, or several that share a
line.

Everything that is asked about a piece again and again is kept with it, and pieces are shared by all
that have the same text, so an edit costs the pieces that it touches. Syntax trees are not kept:
they weigh far more than the text. Nothing here may depend on where a piece stands.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import weakref
from dataclasses import dataclass

from jaxsight.engine import limits, meaning
from jaxsight.engine.definitions import functions_in
from jaxsight.engine.effects import Effects, effects_of_call
from jaxsight.engine.functions import Function
from jaxsight.engine.names import Reads, reads_of
from jaxsight.engine.quiet import quiet
from jaxsight.engine.surface import Surface, guessed_surface, surface_of
from jaxsight.engine.text import Position, Range

_TREES_KEPT = 64
_ELSEWHERE = re.compile(r" \(detected at line \d+\)| on line \d+")
"""Line numbers inside Python's messages: they count from the piece, and the range says it better.
"""


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Why a text does not parse, and where."""

    range: Range
    message: str
    too_large: bool = False
    """The text is larger than what is analyzed (see `limits`): it may well be right."""


@dataclass(frozen=True, eq=False)
class Piece:
    """`id` is 16 hex digits that name the text. Ranges count from the piece's first line.

    `lines_used` is how many lines the statements take (the text may have comments behind them); 0
    when broken.
    """

    text: str
    id: str
    broken: SyntaxProblem | None
    functions: tuple[Function, ...]
    surface: Surface
    lines_used: int

    @functools.cached_property
    def meaning(self) -> str:
        """A digest of the syntax tree without positions, comments and docstrings; of the text when
        broken.
        """
        if self.broken is not None:
            return self.id
        return meaning.digest(tree_of(self.text), docstrings=False)

    @functools.cached_property
    def meaning_with_docstrings(self) -> str:
        """As `meaning`, docstrings included."""
        if self.broken is not None:
            return self.id
        return meaning.digest(tree_of(self.text), docstrings=True)

    @functools.cached_property
    def reads(self) -> Reads:
        """The module's names that the piece uses; none when broken."""
        if self.broken is not None:
            return Reads()
        return reads_of(self.text, self.surface, tree_of(self.text))

    @functools.cached_property
    def effects_of_call(self) -> Effects:
        """What calling the function does that the piece is, or assigns; nothing is known of other
        pieces.
        """
        if self.broken is None:
            match tree_of(self.text).body:
                case [ast.FunctionDef() as function]:
                    return effects_of_call(function)
                case [ast.Assign(value=ast.Lambda() as function)]:
                    return effects_of_call(function)
        return Effects(opaque="a value")

    @functools.cached_property
    def line_count(self) -> int:
        """How many lines the text has; a last line end, which only a piece with a backslash before
        it has, is none.
        """
        return self.text.count("\n") + (not self.text.endswith("\n"))


_pieces: weakref.WeakValueDictionary[str, Piece] = weakref.WeakValueDictionary()


def piece_of(text: str) -> Piece:
    """The piece with this text; the one that exists already, if any module still holds it."""
    piece = _pieces.get(text)
    if piece is None:
        piece = _pieces[text] = _new_piece(text)
    return piece


def _new_piece(text: str) -> Piece:
    id = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    if reason := limits.statement_problem(text):
        problem = SyntaxProblem(first_line(text), reason, too_large=True)
        return Piece(text, id, problem, (), guessed_surface(text), 0)
    try:
        tree = tree_of(text)
    except SyntaxError as error:
        problem = _problem(error, text)
    except (ValueError, RecursionError, MemoryError) as error:
        problem = SyntaxProblem(first_line(text), str(error) or "too deeply nested to be read")
    else:
        used = tree.body[-1].end_lineno or 0 if tree.body else 0
        return Piece(text, id, None, functions_in(tree, text), surface_of(tree, text), used)
    return Piece(text, id, problem, (), guessed_surface(text), 0)


@functools.lru_cache(maxsize=_TREES_KEPT)
def tree_of(text: str) -> ast.Module:
    """The syntax tree of a piece's text. It is shared: nobody may change it.

    Raises:
        SyntaxError: (or ValueError, RecursionError, MemoryError) when it does not parse.
    """
    with quiet():
        return ast.parse(text)


def _problem(error: SyntaxError, text: str) -> SyntaxProblem:
    lines = text.split("\n")
    line = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    column = min(max((error.offset or 1) - 1, 0), len(lines[line]))
    start = Position(line, column)
    end = Position((error.end_lineno or 0) - 1, (error.end_offset or 0) - 1)
    if not (start < end and end.line < len(lines) and end.column <= len(lines[end.line])):
        end = Position(line, min(column + 1, len(lines[line])))
    return SyntaxProblem(Range(start, end), _ELSEWHERE.sub("", error.msg or "invalid syntax"))


def first_line(text: str) -> Range:
    """Where the first line of a text stands in it."""
    return Range(Position(0, 0), Position(0, len(text.partition("\n")[0])))
