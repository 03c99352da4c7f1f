"""Where the user's cursor is, as far as the client says so.

Clients that know us send `jaxsight/cursor` when it moves. Of others, it is known from what
they send anyway: code actions are requested for the cursor, text is edited there, and hovers are
requested for it by editors without a mouse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

CURSOR = "jaxsight/cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """A position in a document of the client's, in its units."""

    uri: str
    line: int
    character: int

    def json(self) -> dict[str, int]:
        """Return the position as in a message."""
        return {"line": self.line, "character": self.character}


class Cursors:
    """The cursor of one client."""

    def __init__(self) -> None:
        self.last: Cursor | None = None
        self.moved: Callable[[Cursor], None] = lambda cursor: None
        """Called when the cursor has moved."""
        self._is_told = False
        self._has_actions = False

    async def told(self, params: object) -> None:
        """Serve `jaxsight/cursor`, with a document and a position as in a standard request."""
        match params:
            case {
                "textDocument": {"uri": str(uri)},
                "position": {"line": int(line), "character": int(character)},
            } if min(line, character) >= 0:
                self._is_told = True
                self._move(Cursor(uri, line, character))
            case _:
                raise JsonRpcInvalidParams(f"{CURSOR} takes a textDocument and a position")

    def edited(self, uri: str, place: types.Position) -> None:
        """Note that text was edited at a place."""
        if not self._is_told:
            self._move(Cursor(uri, place.line, place.character))

    def selected(self, uri: str, range: types.Range) -> None:
        """Note that code actions were requested for a selection."""
        self._has_actions = True
        self.edited(uri, range.start)

    def hovered(self, uri: str, place: types.Position) -> None:
        """Note that a hover was requested, unless its place may be that of the mouse."""
        if not self._has_actions:
            self.edited(uri, place)

    def _move(self, cursor: Cursor) -> None:
        if cursor != self.last:
            self.last = cursor
            self.moved(cursor)
