"""Editors as pytest-lsp plays them: real processes of the server, and a client with the
capabilities of VS Code, Neovim, Emacs or Helix.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.lsp.client import LanguageClient as PyglsClient
from pygls.protocol import JsonRPCResponseMessage, default_converter
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities
from pytest_lsp.client import register_lsp_features
from pytest_lsp.protocol import LanguageClientProtocol

from tests.lsp.client import recorded
from tests.quiet import QUIET

PATIENCE = 120
"""Seconds after which a test gives up."""

TOP = Path(__file__).parents[2]
SERVER = [sys.executable, "-m", "jaxsight", "server"]
PRINTING = [sys.executable, "-m", "tests.e2e.serve_printing"]
"""The server around an engine that prints while it works and when it is closed."""

RECORDED = {
    "VS Code 1.139": "vscode_139",
    "Neovim 0.12": "neovim_0.12.4",
    "Emacs 30.1": "emacs_30.1",
    "Helix 25.01": "helix_25.01.1",
}
"""Clients whose capabilities we recorded."""

SHIPPED = {
    "VS Code 1.65": "visual-studio-code@v1.65",
    "Neovim 0.11": "neovim@v0.11",
    "Emacs 29.1": "emacs@v29.1",
}
"""Clients whose capabilities come with pytest-lsp."""

VSCODE = "VS Code 1.139"


def capabilities_of(editor: str) -> types.ClientCapabilities:
    if editor in SHIPPED:
        return client_capabilities(SHIPPED[editor])
    params = recorded(RECORDED[editor])["initialize"]
    return default_converter().structure(params["capabilities"], types.ClientCapabilities)


def converter() -> Converter:
    """Return pygls' converter, changed in two points.

    Answers to requests of ours stay JSON.
    A code action with a command is structured as an action: lsprotocol takes whatever has a field
    `command` for a command.
    """
    converter = default_converter()
    converter.register_structure_hook(JsonRPCResponseMessage, lambda sent, kind: kind(**sent))
    command_or_action = types.Command | types.CodeAction

    def structure(sent: dict[str, Any], _: Any) -> types.Command | types.CodeAction:
        kind = types.Command if isinstance(sent.get("command"), str) else types.CodeAction
        return converter.structure(sent, kind)

    converter.register_structure_hook(command_or_action, structure)
    return converter


class PatientProtocol(LanguageClientProtocol):
    """Waits for no answer longer than a test may take."""

    async def send_request_async(
        self, method: str, params: Any = None, msg_id: str | int | None = None
    ) -> Any:
        async with asyncio.timeout(PATIENCE):
            return await super().send_request_async(method, params, msg_id)


class Editor(LanguageClient):
    """A client that handles all that jaxsight sends."""

    def __init__(self) -> None:
        super().__init__(protocol_cls=PatientProtocol, converter_factory=converter)
        register_lsp_features(self)
        self.received: list[tuple[str, Any]] = []
        """Methods and parameters of the requests and notifications that came, beside those that
        pytest-lsp keeps.
        """
        self.published: list[types.PublishDiagnosticsParams] = []
        self.choose: Callable[[types.ShowMessageRequestParams], types.MessageActionItem | None]
        self.choose = lambda params: None
        """What to answer the server's questions with."""
        self.server_capabilities = types.ServerCapabilities()
        self.errors = ""
        """What the server wrote to standard error."""
        self._news = asyncio.Condition()
        for method in (
            types.CLIENT_REGISTER_CAPABILITY,
            types.CLIENT_UNREGISTER_CAPABILITY,
            types.WORKSPACE_CODE_LENS_REFRESH,
            types.WORKSPACE_INLAY_HINT_REFRESH,
            types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH,
            types.WINDOW_SHOW_MESSAGE_REQUEST,
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS,
            types.WINDOW_LOG_MESSAGE,
            types.WINDOW_SHOW_DOCUMENT,
            "jaxsight/panelRefresh",
            "jaxsight/status",
            "jaxsight/fileStatus",
        ):
            self._observe(method)

    def _observe(self, method: str) -> None:
        """Keep what comes, after pytest-lsp handled it if it does."""
        handle = self.protocol.fm.features.pop(method, None)

        async def observe(params: Any) -> Any:
            async with self._news:
                self.received.append((method, params))
                self._news.notify_all()
            if method == types.WINDOW_SHOW_MESSAGE_REQUEST:
                return self.choose(params)
            if method == types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS:
                self.published.append(params)
            return None if handle is None else handle(params)

        self.feature(method)(observe)

    async def start_io(self, cmd: str, *args: Any, **kwargs: Any) -> None:
        await PyglsClient.start_io(self, cmd, *args, **kwargs)
        assert self._server is not None
        self._stderr_forwarder = asyncio.create_task(self._read_errors(self._server))

    async def _read_errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            async with self._news:
                self.errors += line.decode()
                self._news.notify_all()

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._server is not None
        return self._server

    async def exit_status(self) -> int:
        """Wait for the end of the server's process, and of what it writes to standard error."""
        assert self._stderr_forwarder is not None
        async with asyncio.timeout(PATIENCE):
            await self._stderr_forwarder
            return await self.process.wait()

    async def kill(self) -> None:
        """End the server, if it has not ended, and the connection."""
        if self._server is not None:
            with contextlib.suppress(ProcessLookupError):
                self._server.kill()
            await self.exit_status()
        await self.stop()

    async def introduce(self, editor: str, *roots: Path, **options: Any) -> None:
        """Introduce the client as an editor that shows folders, with this Python as the user's."""
        params = introduction(editor, *roots, **options)
        answer = await self.initialize_session(params)
        self.server_capabilities = answer.capabilities

    async def until(self, holds: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Wait for messages of the server until a condition holds."""
        async with asyncio.timeout(patience), self._news:
            await self._news.wait_for(holds)

    async def receive(self, method: str, count: int = 1) -> list[Any]:
        """Return the parameters of the messages of a method, once there are `count` of them."""

        def parameters() -> list[Any]:
            return [params for name, params in self.received if name == method]

        await self.until(lambda: len(parameters()) >= count)
        return parameters()

    async def settled(self) -> None:
        """Wait until the server has handled all that was sent before."""
        await self.execute("jaxsight.info")

    def open(self, uri: str, text: str, version: int = 1) -> None:
        document = types.TextDocumentItem(uri, "python", version, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(document))

    def edit(self, uri: str, version: int, text: str, range: types.Range | None = None) -> None:
        """Replace the text of a document, or of a range of it."""
        change: types.TextDocumentContentChangeEvent
        if range is None:
            change = types.TextDocumentContentChangeWholeDocument(text)
        else:
            change = types.TextDocumentContentChangePartial(range=range, text=text)
        document = types.VersionedTextDocumentIdentifier(version, uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    async def hover(self, uri: str, line: int, character: int) -> types.Hover:
        params = types.HoverParams(on(uri), types.Position(line, character))
        hover = await self.text_document_hover_async(params)
        assert hover is not None
        return hover

    async def hover_text(self, uri: str, line: int, character: int) -> str:
        contents = (await self.hover(uri, line, character)).contents
        assert isinstance(contents, types.MarkupContent)
        return contents.value

    async def hints(self, uri: str, lines: int = 30) -> list[types.InlayHint]:
        """Return the hints of the first lines."""
        shown = types.Range(types.Position(0, 0), types.Position(lines, 0))
        params = types.InlayHintParams(on(uri), shown)
        return list(await self.text_document_inlay_hint_async(params) or [])

    async def diagnostics_of(self, uri: str) -> list[types.Diagnostic]:
        """Return the diagnostics of a document: pulled, or those that the server published."""
        if self.server_capabilities.diagnostic_provider is not None:
            params = types.DocumentDiagnosticParams(on(uri))
            report = await self.text_document_diagnostic_async(params)
            assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
            return list(report.items)
        await self.until(lambda: any(params.uri == uri for params in self.published))
        return list([params for params in self.published if params.uri == uri][-1].diagnostics)

    async def code_actions(
        self,
        uri: str,
        range: types.Range,
        only: str | None = None,
        diagnostics: list[types.Diagnostic] | None = None,
    ) -> list[types.CodeAction]:
        kinds = None if only is None else [only]
        context = types.CodeActionContext(diagnostics=diagnostics or [], only=kinds)
        params = types.CodeActionParams(on(uri), range, context)
        actions = await self.text_document_code_action_async(params)
        return [action for action in actions or [] if isinstance(action, types.CodeAction)]

    async def lenses(self, uri: str) -> list[types.CodeLens]:
        return list(await self.text_document_code_lens_async(types.CodeLensParams(on(uri))) or [])

    async def execute(self, command: str | types.Command | None, *arguments: Any) -> Any:
        """Run a command of the server: by its name, or the one of a lens or an action."""
        assert command is not None
        if isinstance(command, types.Command):
            command, arguments = command.command, tuple(command.arguments or ())
        params = types.ExecuteCommandParams(command, list(arguments))
        return await self.workspace_execute_command_async(params)

    async def ask(self, method: str, **params: Any) -> Any:
        """Return the answer to a request of jaxsight's own, as JSON."""
        return await self.protocol.send_request_async(method, params)

    async def linked_content(self, uri: str) -> Any:
        """Return the text of a virtual document, with links from its lines to the source."""
        return await self.ask("jaxsight/textDocumentContent", uri=uri)

    def send_recorded(self, message: Mapping[str, Any]) -> Future[Any]:
        """Send a message as it was recorded, and return its answer, if one will come."""
        answer: Future[Any] = Future()
        if "id" in message:
            self.protocol._request_futures[message["id"]] = answer
            method = message["method"]
            self.protocol._result_types[message["id"]] = self.protocol.get_result_type(method)
        self.protocol._send_data({"jsonrpc": "2.0", **message})
        return answer


async def answer_to(sent: Future[Any]) -> Any:
    """Return the answer to a message that was sent as recorded."""
    return await asyncio.wait_for(asyncio.wrap_future(sent), PATIENCE)


def introduction(editor: str, *roots: Path, **options: Any) -> types.InitializeParams:
    folders = [types.WorkspaceFolder(root.as_uri(), root.name) for root in roots]
    return types.InitializeParams(
        capabilities=capabilities_of(editor),
        root_path=str(roots[0]) if roots else None,
        root_uri=folders[0].uri if roots else None,
        workspace_folders=folders or None,
        initialization_options={**QUIET, "python": sys.executable, **options},
    )


def configuration(command: list[str], editor: type[Editor] = Editor) -> ClientServerConfig:
    """Return how pytest-lsp starts a server, from the code of this checkout."""
    paths = os.pathsep.join([str(TOP / "server"), str(TOP)])
    return ClientServerConfig(
        server_command=command,
        client_factory=editor,
        server_env={**os.environ, "PYTHONPATH": paths},
    )


@asynccontextmanager
async def started(command: list[str], *arguments: str) -> AsyncIterator[Editor]:
    """A server's process, and a client that has not introduced itself."""
    client = await configuration([*command, *arguments]).start()
    assert isinstance(client, Editor)
    try:
        yield client
    finally:
        await client.kill()


@asynccontextmanager
async def opened(editor: str, *roots: Path, **options: Any) -> AsyncIterator[Editor]:
    """An editor that shows folders."""
    async with started(SERVER) as client:
        await client.introduce(editor, *roots, **options)
        yield client
        await client.shutdown_session()


def on(uri: str) -> types.TextDocumentIdentifier:
    return types.TextDocumentIdentifier(uri)


def span(line: int, start: int, end: int) -> types.Range:
    """Return a range on one line."""
    return types.Range(types.Position(line, start), types.Position(line, end))
