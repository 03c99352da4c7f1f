"""Whatever a workspace is called and says, no client obeys it.

Every answer and every message, with hostile texts in all places.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jaxsight.events import FileStatus, Message, Output, Progress, Status
from jaxsight.features.findings.findings import Findings
from jaxsight.features.model import Action, Completion, Hint, Hover, Lens, VirtualText
from jaxsight.features.setup.targets import Offer, Offers
from jaxsight.lsp.convert import notice
from jaxsight.rules.finding import Finding, Place, Severity
from jaxsight.source.text import Edit, Position, Range
from jaxsight.text import markdown
from jaxsight.text.inert import Formatter, clause, one_line, printed, visible
from jaxsight.text.markdown_reader import plain
from jaxsight.wire.messages.requests import TransformedSource
from tests.hostile import EVERYTHING, HARMLESS, TEXTS, hidden
from tests.lsp.client import Client, Ready, at, connected, on, recorded
from tests.lsp.fake_session import FakeSession

URI = "file:///home/user/project/sample.py"
PATH = "/home/user/project/sample.py"
WHOLE = Range(Position(0, 0), Position(0, 4))

GFM = MarkdownIt("commonmark").enable(["table", "strikethrough"])
ADDRESS = re.compile(r"https?://|www\.|\w@\w", re.IGNORECASE)
"""What GitHub's Markdown makes links of, without any brackets."""


def active(text: str) -> list[str]:
    """What of a Markdown text is not words, code or an emphasis of ours."""
    return [token.type for token in _tokens(GFM.parse(text)) if not _passive(token)]


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or [])


def _passive(token: Token) -> bool:
    return token.type in {
        "inline",
        "text",
        "paragraph_open",
        "paragraph_close",
        "code_inline",
        "fence",
        "softbreak",
        "text_special",
    }


@pytest.mark.parametrize("text", [*TEXTS.values(), EVERYTHING], ids=[*TEXTS, "everything"])
@pytest.mark.parametrize(
    "make",
    [
        markdown.escaped,
        markdown.prose,
        markdown.span,
        markdown.fenced,
        lambda text: f"a {markdown.escaped(text)} b",
        lambda text: markdown.prose(f"`{text}` raised: {text}"),
        lambda text: markdown.prose(f"raised `{text}`: {text}` {text}"),
        lambda text: f"x\n{markdown.fenced(text)}\n\n{markdown.span(text)}",
    ],
    ids=["escaped", "prose", "span", "fenced", "inside", "coded", "unpaired", "after"],
)
def test_text_in_markdown_is_only_text(make: Any, text: str) -> None:
    markdown_text = make(text)
    assert active(markdown_text) == []
    assert hidden(markdown_text) == []


@pytest.mark.parametrize("name", ["link", "rich", "image", "reference"])
def test_addresses_in_markdown_are_no_links(name: str) -> None:
    assert ADDRESS.search(TEXTS[name])
    assert ADDRESS.search(markdown.escaped(TEXTS[name])) is None
    assert ADDRESS.search(markdown.prose(TEXTS[name])) is None


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_markdown_reads_back_as_the_text_that_went_in(text: str) -> None:
    assert plain(markdown.escaped(text)) == one_line(text).strip()
    assert plain(markdown.span(text)) == one_line(text).strip()
    assert plain(markdown.fenced(text)) == visible(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_cell_of_a_table_stays_one_cell(text: str) -> None:
    table = f"| a | b |\n|---|---|\n| {markdown.escaped(text)} | 1 |"
    kinds = [token.type for token in GFM.parse(table)]
    assert kinds.count("td_open") == 2
    assert kinds.count("tr_open") == 2


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_foreign_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == one_line(text) == printed(text) == text
    assert clause(text, 200) == " ".join(text.split()), "spaces of all kinds are one"
    assert plain(markdown.escaped(text)) == text


def test_a_joiner_stays_only_where_it_joins() -> None:
    assert visible("a\u200db \u200d👩\u200c") == r"a\u200db \u200d👩\u200c"


def test_hidden_characters_are_written_as_python_writes_them() -> None:
    assert visible("\x1b[2J\x9b\u202e\r\U000e0041\ud800") == r"\x1b[2J\x9b\u202e\r\U000e0041\ud800"
    assert one_line("a\nb\tc") == r"a\nb\tc"


def test_prints_lose_their_colours_and_keep_their_lines() -> None:
    assert printed("\x1b[1;31mred\x1b[0m 1%\r2%\r\nend\n") == "red 1%\n2%\nend\n"


def test_each_record_of_a_log_begins_one_line() -> None:
    import logging

    record = logging.LogRecord("x", 30, "", 0, "%s", (EVERYTHING,), None)
    first, *further = Formatter("%(name)s: %(message)s").format(record).split("\n")
    assert first.startswith("x: ")
    assert further
    assert all(line.startswith("  | ") for line in further)
    assert hidden("\n".join(further)) == []


def test_no_command_is_left_in_a_notice() -> None:
    for text in TEXTS.values():
        assert not re.search(r"\]\(\s*\w+:|\$\(", notice(text))
        assert "\n" not in notice(text)
    assert notice("`x[0](y)` is no target") == "`x[0](y)` is no target"


class HostileSession(FakeSession):
    """Says hostile things in every field that is for people."""

    async def hover(self, path: str, position: Position) -> Hover | None:
        return Hover(WHOLE, f"{markdown.prose(EVERYTHING)}\u202e")

    async def hints(self, path: str, range: Range | None = None) -> list[Hint]:
        return [Hint(WHOLE, f": {EVERYTHING}", markdown.span(EVERYTHING))]

    async def report(self, path: str) -> Findings:
        mention = Place("/other.py", WHOLE, EVERYTHING)
        return Findings([Finding("JX1", Severity.WARNING, WHOLE, EVERYTHING, related=(mention,))])

    async def lenses(self, path: str) -> list[Lens]:
        return [Lens(WHOLE, EVERYTHING, "jaxsight.chooseSet", (path, "f"))]

    async def actions(self, path: str, range: Range) -> list[Action]:
        finding = replace((await self.report(path)).reported[0])
        return [
            Action(EVERYTHING, "quickfix", finding=finding),
            Action(EVERYTHING, "refactor.rewrite", pending="hard"),
            Action(EVERYTHING, "refactor.rewrite", command="jaxsight.show", arguments=(path,)),
        ]

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        raise LookupError(EVERYTHING)

    async def completions(self, path: str, position: Position) -> list[Completion]:
        edit = Edit(Range(position, position), "x")
        return [Completion(EVERYTHING, "dtype", edit, EVERYTHING)]

    async def show(
        self,
        path: str,
        function: str,
        what: str | TransformedSource = "jaxpr",
        program: str | None = None,
    ) -> VirtualText:
        if function == "nothing":
            raise LookupError(EVERYTHING)
        return VirtualText("f.jaxpr", EVERYTHING)

    def sets(self, path: str, function: str) -> list[str]:
        return ["", EVERYTHING, "[x](command:y)"]

    def choose_target(self, name: str) -> None:
        raise LookupError(EVERYTHING)

    async def offers(self, path: str) -> Offers:
        offer = Offer(EVERYTHING, "ssh", EVERYTHING, "", "ready", EVERYTHING, "", active=True)
        return Offers(EVERYTHING, EVERYTHING, "0.12.0", (offer,), ())


@pytest.fixture
async def session() -> HostileSession:
    return HostileSession()


@pytest.fixture
async def client(session: HostileSession) -> AsyncIterator[Client]:
    async with connected(Ready(session)) as client:
        yield client


def strings(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """All texts of a message with the names of their fields."""
    match value:
        case str():
            yield key, value
        case dict():
            for name, member in value.items():
                yield from strings(member, name)
        case list():
            for member in value:
                yield from strings(member, key)


MULTIPLE_LINES = {"message", "value", "text", "documentation"}


@pytest.mark.parametrize("name", ["vscode_139", "neovim_0.12.4", "emacs_30.1"])
async def test_all_answers_and_messages_are_inert(
    name: str, client: Client, session: HostileSession
) -> None:
    await client.initialize(recorded(name)["initialize"])
    client.open(URI, "word = 1\n")
    document = {"textDocument": {"uri": URI}}
    everywhere = {"start": at(0, 0), "end": at(0, 4)}
    context = {"diagnostics": []}
    answers = [
        await client.request("textDocument/hover", on(URI, 0, 0)),
        await client.request("textDocument/codeLens", document),
        await client.request("textDocument/completion", on(URI, 0, 0)),
        await client.request(
            "textDocument/codeAction", {**document, "range": everywhere, "context": context}
        ),
    ]
    hints = await client.request("textDocument/inlayHint", {**document, "range": everywhere})
    answers += hints
    answers += [await client.request("inlayHint/resolve", hint) for hint in hints]
    if "diagnosticProvider" in client.capabilities:
        answers.append(await client.request("textDocument/diagnostic", document))
    for action in [action for action in answers[3] or [] if "data" in action]:
        answers.append(await client.request("codeAction/resolve", action))
    for virtual in (
        "jaxsight-jaxpr:" + PATH + "/f.jaxpr",
        "jaxsight-lax:" + PATH + "/nothing.lax.py",
    ):
        answers.append(await client.request("jaxsight/textDocumentContent", {"uri": virtual}))
    for command in (["jaxsight.chooseSet", PATH, "f"], ["jaxsight.chooseTarget", "x"]):
        params = {"command": command[0], "arguments": command[1:]}
        await client.request("workspace/executeCommand", params)
    answers.append(await client.request("jaxsight/targets", {}))
    told = FileStatus(PATH, EVERYTHING, "missing", EVERYTHING, why=EVERYTHING)
    session.events.put_nowait(replace(told, why_detail=EVERYTHING))
    session.events.put_nowait(Message("error", EVERYTHING))
    session.events.put_nowait(Output(f"/{EVERYTHING}.py", EVERYTHING))
    session.events.put_nowait(
        Status("/home", "failed", EVERYTHING, EVERYTHING, EVERYTHING, EVERYTHING)
    )
    for done in (False, True):
        session.events.put_nowait(Progress("key", EVERYTHING, EVERYTHING, done))
    session.events.put_nowait(Message("info", "last"))
    while (await client.heard("window/showMessage"))[-1]["message"] != "last":
        await client.settled()
    received = [*client.notifications, *client.requests]
    assert {"window/showMessage", "window/logMessage", "jaxsight/status"} <= {
        method for method, _ in received
    }
    for key, text in strings([answers, [params for _, params in received]]):
        assert hidden(text) == [], (key, text)
        assert key in MULTIPLE_LINES or "\n" not in text, (key, text)
    for method, params in received:
        if method in ("window/showMessage", "window/showMessageRequest", "$/progress"):
            assert not re.search(r"\]\(command:|\$\(", json.dumps(params))
            assert all("\n" not in text for _, text in strings(params))
        if method == "window/logMessage":
            _, *further = params["message"].split("\n")
            assert all(line.startswith("  | ") for line in further)
    for field in ("title", "tooltip", "label"):
        assert not any(key == field and "$(" in text for key, text in strings(answers[1])), field


async def test_source_reaches_the_editor_exactly(client: Client, session: HostileSession) -> None:
    await client.initialize(recorded("vscode_139")["initialize"])
    client.open(URI, "word = 1\n")
    uri = f"jaxsight-pretty:{PATH}/f.pretty.py"
    shown = await client.request("jaxsight/textDocumentContent", {"uri": uri})
    assert shown["text"] == EVERYTHING
