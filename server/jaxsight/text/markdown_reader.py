"""Read Markdown as plain text, for clients that show no Markdown and for terminals.

Of Markdown, only what `markdown.py` writes is read: code, emphasis, links and escapes.
Lists and tables keep their marks, and stay legible.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token


def plain(markdown: str) -> str:
    """Return the text without its markup: code stays as it is, links keep their address."""
    return "\n\n".join(text for _, text in sections(markdown))


def sections(
    markdown: str, code: str = "{}", link: str = "{} ({})"
) -> Iterator[tuple[str | None, str]]:
    """Yield prose without its markup (language `None`) and fenced code, in order.

    Args:
        code: the format of a code span.
        link: the format of a link's text and address; a link that runs a command has only its text.
    """
    paragraphs: list[str] = []
    for token in _parser().parse(markdown):
        if token.type == "inline":
            paragraphs.append(_prose(token.children or [], code, link))
        elif token.type == "fence":
            if paragraphs:
                yield None, "\n\n".join(paragraphs)
                paragraphs = []
            yield token.info.strip(), token.content.removesuffix("\n")
    if paragraphs:
        yield None, "\n\n".join(paragraphs)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("zero").enable(["fence", "backticks", "emphasis", "escape", "link"])
    # Addresses are shown, not followed: they stay as they are.
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser


def _prose(tokens: Sequence[Token], code: str, link: str) -> str:
    """Return the text of the tokens of a paragraph."""
    texts = [""]
    """What was read so far, then the texts of the links that are open."""
    addresses: list[str] = []
    for token in tokens:
        match token.type:
            case "code_inline":
                texts[-1] += code.format(token.content)
            case "link_open":
                addresses.append(str(token.attrs["href"]))
                texts.append("")
            case "link_close":
                text, address = texts.pop(), addresses.pop()
                is_command = address.startswith("command:")
                texts[-1] += text if is_command else link.format(text, address)
            case "em_open" | "em_close" | "strong_open" | "strong_close":
                # Underscores are Python's.
                texts[-1] += token.markup.strip("*")
            case _:
                texts[-1] += token.content
    return texts[0]
