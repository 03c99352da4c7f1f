"""Write a section of example inputs into a function's docstring."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsight.examples.docstrings.sections import heading_lines, style_of
from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.source.functions import Function
from jaxsight.source.text import Edit, Position, Range


def section_edit(function: Function, lines: Sequence[str]) -> Edit:
    """Return the edit that adds a section with these lines, in the style of the docstring.

    Without a docstring, the edit adds one. Quotes that cannot contain several lines become triple
    quotes.
    """
    docstring, body, indent = function.docstring, function.body_start, function.body_indent
    source = ChunkText(docstring.text, docstring.start) if docstring is not None else None
    style = style_of(source) if source is not None else "google"
    deeper = indent if style == "numpydoc" else indent + "    "
    heading = [indent + line for line in heading_lines("Example inputs", style)]
    section = "\n".join([*heading, *(deeper + line for line in lines)])
    if docstring is None or source is None:
        before = f"\n{indent}" if body.column != len(indent) else ""  # it is on the line of `def`
        return Edit(Range(body, body), f'{before}"""\n{section}\n{indent}"""\n{indent}')
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
