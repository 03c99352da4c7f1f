"""Elements of HTML: text is escaped, always, and invisible characters are shown as escapes."""

from __future__ import annotations

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


def prose(text: str) -> Markup:
    """Return a sentence of ours, in which code is between backticks."""
    parts = text.split("`")
    return joined(
        *(element("code", part) if index % 2 else part for index, part in enumerate(parts))
    )


def _text(text: object) -> str:
    return escape(visible(str(text)), quote=True)
