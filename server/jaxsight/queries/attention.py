"""Where the user looks: what is there is compiled before the rest."""

from __future__ import annotations

from jaxsight.source.text import Position, Range
from jaxsight.workers.compilation.queue import Urgency


class Attention:
    """The part of each document on screen, and the place that was last edited or asked about.

    An editor reports neither the cursor nor the screen: they are derived from its requests.
    """

    def __init__(self) -> None:
        self._on_screen: dict[str, Range] = {}
        self._cursor: tuple[str, Position] | None = None

    def show(self, path: str, range: Range) -> None:
        """Note the part of a document that is on screen, as of a request for its hints."""
        self._on_screen[path] = range

    def point(self, path: str, position: Position) -> None:
        """Note the place of the cursor, as of an edit or a request."""
        self._cursor = path, position

    def close(self, path: str) -> None:
        """Drop what is known of a document."""
        self._on_screen.pop(path, None)
        if self._cursor is not None and self._cursor[0] == path:
            self._cursor = None

    def urgency(self, path: str, range: Range) -> Urgency:
        """Return how urgent it is to compile the function at a range, if nobody asked about it."""
        on_screen = self._on_screen.get(path)
        seen = self._has_cursor(path, range) or (on_screen is not None and on_screen.touches(range))
        return Urgency.SEEN if seen else Urgency.UNSEEN

    def rank(self, path: str, range: Range) -> tuple[bool, Urgency]:
        """Return a key that sorts functions: the one at the cursor, those on screen, the others."""
        return not self._has_cursor(path, range), self.urgency(path, range)

    def _has_cursor(self, path: str, range: Range) -> bool:
        return self._cursor is not None and self._cursor[0] == path and self._cursor[1] in range
