"""Elements of HTML: text is escaped, always, and invisible characters are shown as escapes."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from html import escape

from jaxsight.text.inert import visible


class Markup(str):
    """HTML that this module wrote."""

    __slots__ = ()


Content = Markup | str | None
"""What an element contains: markup, or text, which is escaped; `None` is nothing."""

_EMPTY = frozenset({"meta", "input", "br"})


def element(tag: str, *children: Content, **attributes: str | bool) -> Markup:
    """Return an element; `_` in names of attributes is `-`, and one at the end is dropped.

    An attribute that is `True` has no value, one that is `False` or empty is left out.
    """
    own = "".join(
        f" {name.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{_text(value)}"')
        for name, value in attributes.items()
        if value
    )
    if tag in _EMPTY:
        return Markup(f"<{tag}{own}>")
    return Markup(f"<{tag}{own}>{joined(*children)}</{tag}>")


def joined(*children: Content) -> Markup:
    """Return several contents as one."""
    return Markup(
        "".join(
            each if isinstance(each, Markup) else _text(each)
            for each in children
            if each is not None
        )
    )


def html_table(
    titles: Iterable[str],
    rows: Iterable[Iterable[Content]],
    numbers: Collection[int] = (),
    *,
    row: str = "",
    class_: str = "",
) -> Markup:
    """Return a table.

    Args:
        titles: those of its columns.
        rows: the contents of cells.
        numbers: the columns that have numbers.
        row: the class of rows.
        class_: that of the table.
    """
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    body = (
        element(
            "tr",
            *(
                element("td", cell, class_="number" if column in numbers else "")
                for column, cell in enumerate(cells)
            ),
            class_=row,
        )
        for cells in rows
    )
    return element("table", element("thead", head), element("tbody", *body), class_=class_)


def prose(text: str) -> Markup:
    """Return a sentence of ours, in which code is between backticks."""
    parts = text.split("`")
    return joined(
        *(element("code", part) if index % 2 else part for index, part in enumerate(parts))
    )


def _text(text: object) -> str:
    return escape(visible(str(text)), quote=True)


# HLO and jaxprs in a page: compressed, and only as many as its size allows.

_BEST = 9


@dataclass(slots=True)
class PageTexts:
    """The texts of a page by a digest of their own, each kept once, until they fill it."""

    budget: int
    """Bytes that are left for them."""
    dropped: int = 0
    """Texts that were left out."""
    _numbers: dict[str, int] = field(default_factory=dict)
    _packed: list[str] = field(default_factory=list)

    def keep(self, text: str) -> int | None:
        """Return the number of a text; `None` if it is left out."""
        if text in self._numbers:
            return self._numbers[text]
        raw = zlib.compressobj(_BEST, zlib.DEFLATED, -zlib.MAX_WBITS)
        data = raw.compress(visible(text).encode("utf-8", "replace")) + raw.flush()
        packed = base64.b64encode(data).decode()
        if len(packed) > self.budget:
            self.dropped += 1
            return None
        self.budget -= len(packed)
        self._numbers[text] = len(self._packed)
        self._packed.append(packed)
        return self._numbers[text]

    @property
    def packed(self) -> list[str]:
        """The texts as base64 of raw deflate (RFC 1951), which browsers decompress."""
        return self._packed
