"""Positions of an old text in the text after an edit.

Text outside of the changed part moves with it. Inside, only unchanged lines keep their positions,
and the unchanged beginning and end of a line that was edited. Nothing is guessed: a position that
was edited away has no new one.
"""

from __future__ import annotations

import bisect
import difflib
import functools
from dataclasses import dataclass
from typing import TypeVar

from jaxsight.source.text import Position, Range, lines_of

Text = TypeVar("Text", str, list[str])

_MATCHED_LINES = 400
"""Changed lines, old and new together, up to which they are matched line by line, a choice:
`difflib` takes quadratic time. In larger changes all positions are gone."""


def common_prefix(first: Text, second: Text, *, limit: int | None = None) -> int:
    """Return the length of the common prefix of two texts or lists of lines, at most `limit`."""
    low, high = 0, min(len(first), len(second)) if limit is None else limit
    while low < high:
        # Slices are compared in C: a search by halves takes fewer steps of Python than one by
        # letters.
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(first: str, second: str, *, limit: int) -> int:
    """Return the length of the common suffix of two texts, at most `limit`."""
    return common_prefix(first[::-1], second[::-1], limit=limit)


@dataclass(frozen=True, slots=True)
class _UnchangedLines:
    """`count` unchanged lines, from line `old` of the old text and line `new` of the new text."""

    old: int
    new: int
    count: int


@dataclass(frozen=True, slots=True)
class _EditedLine:
    """A line that was edited: its first `head` and last `tail` characters are unchanged."""

    line: int
    head: int
    tail: int
    old: str
    new: str

    def columns(self, first: int, last: int) -> tuple[int, int] | None:
        """Return the new columns of a part of the line if it is unchanged, otherwise `None`.

        It moves with its side of the change.
        """
        longer = len(self.new) - len(self.old)
        if last <= self.head:
            return first, last
        if len(self.old) - first <= self.tail:
            return first + longer, last + longer
        return None

    def keeps_words(self, old: int, new: int) -> bool:
        """Return whether the new column is inside a word only if the old one was."""
        return _inside_word(self.old, old) or not _inside_word(self.new, new)


def _inside_word(line: str, column: int) -> bool:
    return 0 < column < len(line) and all(
        c.isalnum() or c == "_" for c in line[column - 1 : column + 1]
    )


class TextShift:
    """The mapping of positions from one text to another."""

    def __init__(self, old: str, new: str) -> None:
        self._kept: list[_UnchangedLines] = []
        self._typed: dict[int, _EditedLine] = {}
        before, after = lines_of(old), lines_of(new)
        head = common_prefix(before, after)
        self._keep(0, 0, head)
        limit = min(len(before), len(after)) - head
        tail = common_prefix(before[::-1], after[::-1], limit=limit)
        self._match(before, after, head, len(before) - tail, len(after) - tail)
        self._keep(len(before) - tail, len(after) - tail, tail)

    def position(self, position: Position) -> Position | None:
        """Return the new position of an old one, before text inserted there; `None` if gone."""
        return self._part(position.line, position.column, position.column)[0]

    def range(self, range: Range) -> Range | None:
        """Return the new range of an old one.

        It is `None` if one of its ends is gone, or if its only line was changed inside it.
        """
        first, last = range.start, range.end
        if first.line == last.line:
            start, end = self._part(first.line, first.column, last.column)
        else:
            start, end = self.position(first), self.position(last)
        if start is None or end is None or end < start:
            return None
        for old, new in ((first, start), (last, end)):
            typed = self._typed.get(old.line)
            if typed is not None and not typed.keeps_words(old.column, new.column):
                return None
        return Range(start, end)

    def keeps(self, line: int) -> bool:
        """Return whether a whole line of the old text is unchanged in the new one."""
        return self._moved(line) is not None

    def is_unchanged(self, line: int) -> bool:
        """Return whether a whole line of the new text is unchanged from the old one."""
        at = bisect.bisect_right(self._kept, line, key=lambda lines: lines.new) - 1
        return at >= 0 and line < self._kept[at].new + self._kept[at].count

    def _part(
        self, line: int, first: int, last: int
    ) -> tuple[Position, Position] | tuple[None, None]:
        """Return the new positions of a part of one old line, if it is unchanged."""
        if (new := self._moved(line)) is not None:
            return Position(new, first), Position(new, last)
        typed = self._typed.get(line)
        columns = typed.columns(first, last) if typed is not None else None
        if typed is None or columns is None:
            return None, None
        return Position(typed.line, columns[0]), Position(typed.line, columns[1])

    def _moved(self, line: int) -> int | None:
        """Return the number of an old line in the new text; `None` if it was changed."""
        at = bisect.bisect_right(self._kept, line, key=lambda lines: lines.old) - 1
        if at < 0 or line >= self._kept[at].old + self._kept[at].count:
            return None
        return line + self._kept[at].new - self._kept[at].old

    def _keep(self, old: int, new: int, count: int) -> None:
        if count:
            self._kept.append(_UnchangedLines(old, new, count))

    def _match(self, before: list[str], after: list[str], first: int, last: int, end: int) -> None:
        """Match changed lines: `first` to `last` of the old text, `first` to `end` of the new."""
        old, new = before[first:last], after[first:end]
        if not old or not new or len(old) + len(new) > _MATCHED_LINES:
            return
        if len(old) == len(new) == 1:
            self._type(first, first, old[0], new[0])
            return
        # Junk heuristics would drop lines such as `)`, which then count as changed.
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, i, i_end, j, j_end in matcher.get_opcodes():
            if tag == "equal":
                self._keep(first + i, first + j, i_end - i)
            elif tag == "replace" and i_end - i == j_end - j:
                for k in range(i_end - i):
                    self._type(first + i + k, first + j + k, old[i + k], new[j + k])

    def _type(self, line: int, new_line: int, old: str, new: str) -> None:
        head = common_prefix(old, new)
        tail = common_suffix(old, new, limit=min(len(old), len(new)) - head)
        self._typed[line] = _EditedLine(new_line, head, tail, old, new)


shift_between = functools.lru_cache(maxsize=64)(TextShift)
"""Returns the shift from one text to another; those of the open functions' chunks are kept."""
