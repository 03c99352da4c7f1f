"""The panel as one file: what is put into it, and what it may do.

What it looks like in a browser is for `tests/report`.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser

from jaxsight.page import embedded, served

NASTY = '</script><script>alert(1)</script><!-- ]]> \u2028 \x00 é \ud800 "'


class Elements(HTMLParser):
    """The tags of a page, and the policy that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"] or ""


def data_of(text: str) -> object:
    """Return the data as the page's script reads them."""
    match = re.search(r'id="jaxsight-data">([A-Za-z0-9+/=]+)</script>', text)
    assert match is not None
    return json.loads(zlib.decompress(base64.b64decode(match[1]), -zlib.MAX_WBITS))


def test_what_is_put_into_a_page_is_read_from_it() -> None:
    data = {"entries": [{"text": "∂x → y", "numbers": [1, 2.5, None]}]}
    assert data_of(embedded(data, "step")) == data


def test_text_of_others_is_no_markup() -> None:
    plain, nasty = embedded({}, "step"), embedded({"text": NASTY}, NASTY)
    assert Elements(nasty).tags == Elements(plain).tags
    assert "alert(1)</script>" not in nasty


def test_a_character_that_utf8_lacks_is_written_as_its_escape() -> None:
    text = data_of(embedded(["\ud800"], "step"))
    assert text == ["\ud800"]


def test_a_page_with_data_has_no_way_to_a_network() -> None:
    rules = dict(rule.split(" ", 1) for rule in Elements(embedded({}, "step")).policy.split("; "))
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == "'none'"
    assert rules["script-src"].startswith("'sha256-")
    assert "unsafe" not in str(rules)


def test_a_served_page_reaches_its_server_alone() -> None:
    text = served()
    assert "connect-src 'self'" in Elements(text).policy
    assert 'id="jaxsight-data"' not in text


def test_a_page_without_data_is_small_enough_for_a_message() -> None:
    assert len(embedded({}, "step").encode()) < 800_000
