"""What the panel shows in a browser, and when: it follows the editor's cursor.

This is the job of `vscode-extension/src/panel/panel.ts` in VS Code; messages are those of
`vscode-extension/panel/src/messages.ts`, and docs/protocol.md has them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from jaxsight.lsp.context import ClientContext
from jaxsight.lsp.cursors import Cursor
from jaxsight.lsp.documents.uris import uri_key
from jaxsight.lsp.features.panel import Panels
from jaxsight.lsp.features.runs.measuring import MeasureCommand
from jaxsight.lsp.features.targets import Targets
from jaxsight.lsp.features.virtual_documents import VirtualDocuments
from jaxsight.lsp.transport.messages import JsonObject
from jaxsight.text.inert import one_line

log = logging.getLogger(__name__)

REVEAL = "jaxsight/reveal"
_REST = 0.15
"""Seconds that the cursor rests before another function is asked for, as in VS Code."""


@dataclass(frozen=True, slots=True)
class Known:
    """A function by its name."""

    uri: str
    function: str

    def json(self) -> JsonObject:
        """Return it as parameters of `jaxsight/panel`."""
        return {"uri": self.uri, "function": self.function}


class FollowingPanel:
    """The panel of one connection; all pages show the same."""

    def __init__(
        self,
        context: ClientContext,
        panels: Panels,
        virtual_documents: VirtualDocuments,
        targets: Targets,
        measuring: MeasureCommand,
        send: Callable[[JsonObject], None],
    ) -> None:
        """Create a panel that shows nothing until a page is ready.

        Args:
            context: the editor.
            panels: answer for what functions the panel shows.
            virtual_documents: have their texts.
            targets: are chosen on the page.
            measuring: runs a function, if the user agrees.
            send: sends a message to the pages.
        """
        self._context = context
        self._panels = panels
        self._virtual_documents = virtual_documents
        self._targets = targets
        self._measure_command = measuring
        self._send = send
        self._start = context.start
        self._pinned = self._paused = False
        self._shown: JsonObject | None = None
        self._known: Known | None = None
        """The function that is shown, or asked for."""
        self._asking: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._resting: asyncio.TimerHandle | None = None

    @property
    def cursor(self) -> Cursor | None:
        """Where the editor's cursor is, in a document with functions."""
        cursor = self._context.cursors.last
        if cursor is None or self._context.documents.view(cursor.uri) is None:
            return None
        return cursor

    def rest(self) -> None:
        """Give up what is asked for: no page is open."""
        for pending in (self._asking, self._sweeping, self._resting):
            if pending is not None:
                pending.cancel()

    def moved(self, cursor: Cursor) -> None:
        """Follow the cursor, once it rests in another function."""
        self._send_cursor(cursor)
        if not self._is_inside(cursor) and not self._pinned and not self._paused:
            if self._resting is not None:
                self._resting.cancel()
            loop = asyncio.get_running_loop()
            self._resting = loop.call_later(_REST, lambda: self._ask([_at(cursor)]))

    def refreshed(self, is_shown: Callable[[str], bool]) -> None:
        """Ask again if there are answers about the file that is shown, or nothing is."""
        if self._shown is None or is_shown(self._shown["uri"]):
            self._again()

    def hear(self, message: object) -> None:
        """Handle a message of the page.

        Raises:
            ValueError: it is none.
        """
        match message:
            case {"type": "ready"}:
                following = {"pinned": self._pinned, "paused": self._paused}
                self._send({"type": "following", "following": following})
                self._send({"type": "show", "shown": self._shown})
                self._again()
            case {"type": "follow", "following": {"pinned": bool(pinned), "paused": bool(paused)}}:
                self._pinned, self._paused = pinned, paused
                self._again()
            case {"type": "reveal", "places": list(places), "focus": bool(focus)}:
                revealing = self._reveal([_place(each) for each in places], focus=focus)
                self._start(revealing, "revealing places")
            case {"type": "content", "kind": str(kind)}:
                if self._shown is not None and kind in self._shown["documents"]:
                    self._start(self._content(self._shown, kind), "showing a document")
            case {"type": "sweep", "sizes": str(sizes), "figure": str(figure)}:
                self._give_up_sweep()
                if self._known is not None:
                    params = {**self._known.json(), "sizes": sizes, "figure": figure}
                    self._sweeping = self._start(self._sweep(params), "sweeping")
            case {"type": "chooseSet", "set": str(name)}:
                if (known := self._known) is not None:
                    path = self._context.path(known.uri)
                    self._context.session.choose_set(path, known.function, name)
                    self._again()
            case {"type": "chooseTarget", "target": str(target)}:
                if self._known is not None:
                    choosing = self._choose_target(target, self._context.path(self._known.uri))
                    self._start(choosing, "choosing a target")
            case {"type": "measure"}:
                if self._known is not None:
                    self._start(self._measure(self._known), "measuring")
            case _:
                raise ValueError("this is no message of the panel's page")

    def show(self, known: Known) -> None:
        """Show a function until the cursor moves to another one."""
        self._known, self._shown = known, None
        self._ask([known.json()])

    def _send_cursor(self, cursor: Cursor) -> None:
        self._send({"type": "cursor", "uri": cursor.uri, "position": cursor.json()})

    def _is_inside(self, cursor: Cursor) -> bool:
        """Return whether the cursor is in the function that is shown."""
        match self._shown:
            case {"uri": str(uri), "range": {"start": {"line": first}, "end": {"line": last}}}:
                return uri_key(uri) == uri_key(cursor.uri) and first <= cursor.line <= last
        return False

    def _again(self) -> None:
        """Ask for what is shown: there may be more of it."""
        if self._paused and self._shown is not None:
            return
        asked = [] if self._known is None else [self._known.json()]
        if (cursor := self.cursor) is not None:
            self._send_cursor(cursor)
            # A function around the cursor goes first; without one, the one that is shown stays.
            asked.insert(len(asked) if self._pinned else 0, _at(cursor))
        self._ask(asked)

    def _ask(self, asked: Sequence[JsonObject]) -> None:
        """Ask, the next where the one before has no answer; give up what was asked before."""
        if self._asking is not None:
            self._asking.cancel()
        self._send({"type": "busy", "busy": True})
        self._asking = self._start(self._answer(asked), "showing a panel")

    async def _answer(self, asked: Sequence[JsonObject]) -> None:
        try:
            for each in asked:
                if (shown := await self._panels.panel(each)) is not None:
                    self._show(shown)
                    return
        finally:
            if self._asking is asyncio.current_task():
                self._send({"type": "busy", "busy": False})

    def _show(self, shown: JsonObject) -> None:
        known = Known(shown["uri"], shown["function"])
        if known != self._known:
            self._give_up_sweep()
        self._known = known
        if shown != self._shown:
            self._shown = shown
            self._send({"type": "show", "shown": shown})

    async def _content(self, shown: JsonObject, asked: str) -> None:
        try:
            content = await self._virtual_documents.with_links({"uri": shown["documents"][asked]})
        except Exception as error:
            # The tab would wait for it.
            text = f"# cannot be shown: {one_line(str(error)) or type(error).__name__}\n"
            self._send_content(shown, asked, {"text": text, "stale": False, "links": []})
            raise
        self._send_content(shown, asked, content)

    def _send_content(self, shown: JsonObject, asked: str, content: JsonObject) -> None:
        if self._shown is shown:
            self._send({"type": "content", "kind": asked, "content": content})

    def _give_up_sweep(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()

    async def _sweep(self, params: JsonObject) -> None:
        try:
            swept = await self._panels.sweep(params)
        except JsonRpcException as error:
            log.warning("refusing a sweep of the panel's page: %s", error)
            return
        self._send({"type": "swept", "swept": swept})

    async def _measure(self, known: Known) -> None:
        self._send({"type": "measuring", "measuring": True})
        try:
            work = self._measure_command.measured(self._context.path(known.uri), known.function)
            await self._context.refusing(work)
        finally:
            self._send({"type": "measuring", "measuring": False})

    async def _choose_target(self, target: str, path: str) -> None:
        await self._targets.choose(target, path)
        self._again()

    async def _reveal(self, places: Sequence[types.Location], *, focus: bool) -> None:
        """Show places of open documents in the editor; `focus`: go to the first.

        A client that highlights no places goes to the first at any rate.
        """
        context = self._context
        places = [place for place in places if context.documents.view(place.uri) is not None]
        if context.client.knows_us:
            sent = context.converter.unstructure(places)
            context.notify(REVEAL, {"places": sent, "focus": focus})
        if places and context.client.shows_documents and (focus or not context.client.knows_us):
            uri, range = places[0].uri, places[0].range
            start = types.Range(range.start, range.start)
            params = types.ShowDocumentParams(uri=uri, take_focus=focus, selection=start)
            await context.connection.window_show_document_async(params)


def _place(place: object) -> types.Location:
    match place:
        case {
            "uri": str(uri),
            "range": {
                "start": {"line": int(line), "character": int(character)},
                "end": {"line": int(last), "character": int(after)},
            },
        }:
            start, end = types.Position(line, character), types.Position(last, after)
            return types.Location(uri, types.Range(start, end))
    raise ValueError("this is no place")


def _at(cursor: Cursor) -> JsonObject:
    return {"uri": cursor.uri, "position": cursor.json()}
