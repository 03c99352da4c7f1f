"""Write a section of example inputs into a function's docstring."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.examples.docstrings.sections import Style, heading_lines, style_of
from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.source.functions import Docstring, Function
from jaxsight.source.text import Edit, Position, Range


def section_edit(function: Function, lines: Sequence[str]) -> Edit:
    """Return the edit that adds a section with these lines, in the style of the docstring.

    Without a docstring, the edit adds one.
    """
    style = style_of(_source(function.docstring)) if function.docstring is not None else "google"
    body = function.body_start
    indent = function.body_indent
    one_line = body.column != len(indent)
    section = _section(lines, style, indent)
    if function.docstring is None:
        before = f"\n{indent}" if one_line else ""
        return Edit(Range(body, body), f'{before}"""\n{section}\n{indent}"""\n{indent}')
    return _appended(function.docstring, body, indent, section)


def _source(docstring: Docstring) -> ChunkText:
    return ChunkText(docstring.text, docstring.start)


def _section(lines: Sequence[str], style: Style, indent: str) -> str:
    deeper = indent if style == "numpydoc" else indent + "    "
    heading = [indent + line for line in heading_lines("Example inputs", style)]
    return "\n".join([*heading, *(deeper + line for line in lines)])


def _appended(docstring: Docstring, body: Position, indent: str, section: str) -> Edit:
    """Return the edit that adds a section to the docstring's text.

    Quotes that cannot contain several lines become triple quotes.
    """
    source = _source(docstring)
    text = docstring.text.rstrip()
    addition = ("\n\n" if text else "\n") + section + "\n" + indent
    quotes = docstring.start.column - body.column if docstring.start.line == body.line else 3
    if quotes >= 3:
        return Edit(source.range(len(text), len(docstring.text)), addition)
    around = "'''" if '"""' in text else '"""'
    end = source.position(len(docstring.text))
    content = Range(
        Position(docstring.start.line, docstring.start.column - 1),
        Position(end.line, end.column + 1),
    )
    return Edit(content, around + text + addition + around)
