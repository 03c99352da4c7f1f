"""Hovers, hints and diagnostics of the real engine about a module that is hostile all over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lsprotocol import types

from tests.e2e.editor import on, opened
from tests.hostile import EVERYTHING, hidden
from tests.lsp.test_inert import GFM

IN_LITERALS = (
    "[x](command:jaxsight.show?%5B%5D) ![i](http://evil.example/i.png) <img src=x> ``` ` |"
)
NAME = "__init__x__"

MODEL = f'''\
EVERYTHING = {EVERYTHING!a}


class Thing:
    """A static argument that describes itself."""

    def __repr__(self):
        return EVERYTHING


THING = Thing()


def {NAME}(x, options, thing=THING):
    """
    Example inputs ([x] <b> *s* ![i]):
        x: f32[3]
        options: {{"{IN_LITERALS}": 2.0}}
    """
    y = x * options["{IN_LITERALS}"]
    pair = {{"{IN_LITERALS}": y, "\\x1b[2J\\u202e": y}}
    return pair["{IN_LITERALS}"]


def raises(x):
    """
    Example inputs:
        x: f32[3]
    """
    raise ValueError(EVERYTHING)
'''


def dangers(text: str) -> list[str]:
    """Images, HTML and links of a Markdown text, but for those to pages of ours and of JAX."""
    dangerous: list[str] = []
    for token in GFM.parse(text):
        for part in [token, *(token.children or [])]:
            if part.type in ("image", "html_inline", "html_block"):
                dangerous.append(part.type)
            if part.type == "link_open":
                dangerous.append(str(part.attrs["href"]))
    return dangerous


@pytest.fixture
def uri(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    return (tmp_path / "model.py").as_uri()


@pytest.mark.parametrize("kernels", [False, True])
async def test_hovers_and_hints_are_inert(tmp_path: Path, uri: str, kernels: bool) -> None:
    options = {"inlayHints": {"kernels": kernels, "barriers": kernels, "shapes": True}}
    async with opened("Neovim 0.12", tmp_path, target="cpu", **options) as editor:
        editor.open(uri, MODEL)
        values: list[str] = []
        for line, text in enumerate(MODEL.split("\n")):
            for part in (NAME, "raises", "x *", "pair", "y ="):
                if part not in text:
                    continue
                position = types.Position(line, text.index(part) + 1)
                params = types.HoverParams(on(uri), position)
                hover = await editor.text_document_hover_async(params)
                if hover is not None:
                    assert isinstance(hover.contents, types.MarkupContent)
                    values.append(hover.contents.value)
        assert any(r"\[x\]" in value for value in values)
        assert any("ValueError" in value for value in values)
        hints = await editor.hints(uri, MODEL.count("\n"))
        while any("compiling…" in str(hint.label) for hint in hints):  # on a busy machine
            await asyncio.sleep(0.2)
            hints = await editor.hints(uri, MODEL.count("\n"))
        assert hints
        for hint in hints:
            assert isinstance(hint.label, str)
            assert hidden(hint.label) == []
            assert "\n" not in hint.label
            resolved = await editor.inlay_hint_resolve_async(hint)
            assert isinstance(resolved.tooltip, types.MarkupContent)
            values.append(resolved.tooltip.value)
        for value in values:
            assert hidden(value) == []
            assert [danger for danger in dangers(value) if not danger.startswith("https://")] == []
            assert not any("evil" in danger for danger in dangers(value))
        messages = [diagnostic.message for diagnostic in await editor.diagnostics_of(uri)]
        assert any("ValueError" in message for message in messages)
        assert all(hidden(message) == [] for message in messages)
