"""Hovers, hints and diagnostics of the real engine about a module that is hostile all over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hostile import EVERYTHING, hidden
from tests.lsp.client import at, on
from tests.lsp.test_end_to_end import editor
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
    found: list[str] = []
    for token in GFM.parse(text):
        for each in [token, *(token.children or [])]:
            if each.type in ("image", "html_inline", "html_block"):
                found.append(each.type)
            if each.type == "link_open":
                found.append(str(each.attrs["href"]))
    return found


@pytest.fixture
def uri(tmp_path: Path) -> str:
    (tmp_path / "model.py").write_text(MODEL)
    return (tmp_path / "model.py").as_uri()


@pytest.mark.parametrize("kernels", [False, True])
async def test_hovers_and_hints_are_inert(tmp_path: Path, uri: str, kernels: bool) -> None:
    options = {"inlayHints": {"kernels": kernels, "barriers": kernels, "shapes": True}}
    async with editor("neovim_0.12.4", tmp_path, target="cpu", **options) as client:
        client.open(uri, MODEL)
        lines = MODEL.split("\n")
        shown: list[Any] = []
        for line, text in enumerate(lines):
            for part in (NAME, "raises", "x *", "pair", "y ="):
                if part in text:
                    place = on(uri, line, text.index(part) + 1)
                    shown += [await client.request("textDocument/hover", place)]
        values = [each["contents"]["value"] for each in shown if each is not None]
        assert any(r"\[x\]" in value for value in values)
        assert any("ValueError" in value for value in values)
        whole = {"start": at(0, 0), "end": at(len(lines) - 1, 0)}
        asked = {"textDocument": {"uri": uri}, "range": whole}
        hints = await client.request("textDocument/inlayHint", asked)
        assert hints
        for hint in hints:
            assert hidden(hint["label"]) == []
            assert "\n" not in hint["label"]
            resolved = await client.request("inlayHint/resolve", hint)
            values.append(resolved["tooltip"]["value"])
        for value in values:
            assert hidden(value) == []
            assert [each for each in dangers(value) if not each.startswith("https://")] == []
            assert not any("evil" in each for each in dangers(value))
        found = await client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        assert any("ValueError" in item["message"] for item in found["items"])
        assert all(hidden(item["message"]) == [] for item in found["items"])
