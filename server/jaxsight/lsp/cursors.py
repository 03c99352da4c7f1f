"""Where the user's cursor is, as far as the client says so.

Clients that know us send `jaxsight/cursor` when it moves. Of others, it is known from what
they send anyway: code actions are requested for the cursor, text is edited there, and hovers are
requested for it by editors without a mouse. Which those are, the first code actions show that
nobody asked for: an editor that requests them wherever the cursor rests has a mouse.

Sublime Text requests them so with `triggerKind` 2 (`_on_selection_modified_debounced_async` in
sublimelsp/LSP, plugin/documents.py), Zed with none (`refresh_code_actions_for_selection` in
crates/editor/src/code_actions.rs, 250 ms after the cursor moved). Helix only with 1, from its menu.
"""

from __future__ import annotations

from collections.abc import Callable

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

CURSOR = "jaxsight/cursor"


Cursor = tuple[str, int, int]
"""A document, line and character of the client's, in its units."""


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
                self._move((uri, line, character))
            case _:
                raise JsonRpcInvalidParams(f"{CURSOR} takes a textDocument and a position")

    def edited(self, uri: str, place: types.Position) -> None:
        """Note that text was edited at a place."""
        if not self._is_told:
            self._move((uri, place.line, place.character))

    def selected(
        self, uri: str, range: types.Range, trigger: types.CodeActionTriggerKind | None
    ) -> None:
        """Note that code actions were requested for a selection."""
        if trigger != types.CodeActionTriggerKind.Invoked:
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
