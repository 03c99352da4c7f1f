"""An answer in parts, whose rows are cut to a number of characters, as text or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.text.layout import cut

LEAST_BUDGET = 400
"""The fewest characters of an answer: what it is about, and a command for more."""
_FLOORS = (3, 1, 0)
"""Rows that the parts keep, round after round: each keeps some before one loses all."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A row: its text, of one line or several, and the same as JSON."""

    text: str
    record: Mapping[str, object] | str


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Rows about one thing, the most important first; without any, there are none of it."""

    name: str
    """The key of the rows in JSON, and their title as text, unless there is another one."""
    rows: tuple[AnswerRow, ...]
    title: str = ""
    is_inline: bool = False
    """Whether the rows are written on the line of the title."""
    rest: int = 0
    """Further rows that were not even offered."""


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An answer: what it is about, and its parts, the most important first."""

    headline: str
    head: Mapping[str, object]
    """The same as JSON."""
    parts: tuple[AnswerPart, ...]

    def text(self, budget: int) -> str:
        """Return the answer as text of at most so many characters."""
        shown = self._fitted(budget, lambda counts: len(self._text(counts)))
        return cut(self._text(shown), budget) if shown else self._text(shown)

    def record(self, budget: int, length: Callable[[object], int]) -> dict[str, object]:
        """Return the answer as JSON, which `length` says the characters of.

        `left_out` has the number of rows that are not there, for each part that is cut.
        """
        return self._record(self._fitted(budget, lambda counts: length(self._record(counts))))

    def _fitted(self, budget: int, length: Callable[[Sequence[int]], int]) -> Sequence[int]:
        """Return how many rows of each part are shown."""
        counts = [len(part.rows) for part in self.parts]
        for floor in _FLOORS:
            for index in reversed(range(len(counts))):
                while counts[index] > floor and length(counts) > budget:
                    counts[index] -= 1
        return counts

    def _text(self, counts: Sequence[int]) -> str:
        lines = [self.headline]
        for part, count in zip(self.parts, counts, strict=True):
            title, texts = part.title or part.name, [row.text for row in part.rows[:count]]
            left = len(part.rows) - count + part.rest
            if not texts:
                lines.append(f"{title}: {f'{left} not shown' if left else 'none'}")
            elif part.is_inline:
                more = [f"and {left} more"] if left else []
                lines.append(f"{title}: {', '.join([*texts, *more])}")
            else:
                lines.append(f"{title}:")
                lines += [f"  {line}" for text in texts for line in text.split("\n")]
                lines += [f"  and {left} more"] if left else []
        return "\n".join(lines)

    def _record(self, counts: Sequence[int]) -> dict[str, object]:
        parts = list(zip(self.parts, counts, strict=True))
        left = {part.name: len(part.rows) - count + part.rest for part, count in parts}
        return {
            **self.head,
            **{part.name: [row.record for row in part.rows[:count]] for part, count in parts},
            "left_out": {name: count for name, count in left.items() if count},
        }
