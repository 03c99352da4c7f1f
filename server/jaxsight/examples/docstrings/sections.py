"""Find the example-input sections of a docstring, in Google, numpydoc and reST style.

This module only divides sections into logical lines; `lines` reads them. Text outside of sections
is never reported: a docstring is prose first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from jaxsight.examples.notation.tokens import BLANK, STRING, ChunkText
from jaxsight.examples.problems import MALFORMED, Problem, problem
from jaxsight.source.text import Range

Topic = OneOf["inputs", "expect"]
Style = OneOf["google", "numpydoc", "rest"]

_NUMPYDOC = re.compile(r"^[ \t]*[A-Z][\w ]*\r?\n[ \t]*-{3,}[ \t]*\r?$", re.MULTILINE)
_REST = re.compile(
    r"^[ \t]*:(?:param|parameter|arg|type|returns?|rtype|raises)\b[^:\n]*:", re.MULTILINE
)

SET_HELP = "write `Example inputs (NAME):` for a named set"
TARGET_HELP = "write `Expect (h100):`, or `Expect:` for the configured target"

_HEADING = re.compile(
    r"""
    (?P<blank>[ \t]*)
    (?P<mark>\.\.[ \t]+rubric::[ \t]*|:)?
    (?P<heading>(?P<title>(?i:example[ \t]+inputs)|Expect)
      (?:[ \t]*\((?P<name>[^()\r\n]*)\))?)
    [ \t]*(?P<colon>::?)?
    (?P<rest>.*)
    """,
    re.VERBOSE,
)
_UNDERLINE = re.compile(r"[ \t]*([-=~^\"'*+])\1{2,}[ \t]*")
_OTHER = re.compile(r"[ \t]*(?:\.\.[ \t]|>>>|:[a-zA-Z])")
"""Lines that cannot be items: directives, doctests, fields."""
_UNCLOSED = re.compile(r"[ \t]*:?(?i:example[ \t]+inputs)[ \t]*(?P<open>\()[^()]*:[ \t]*")
_ITEM = re.compile(
    r"[ \t]*(?:where[ \t]+\w+[ \t]*=|Expect[ \t]*\("
    r"|\*{0,2}[^\W\d]\w*(?:[ \t]*,[ \t]*[^\W\d]\w*)*[ \t]*:)"
)
_CONDITION = re.compile(r"[ \t]*[A-Za-z_][\w-]*[ \t]*(?:<=?|>=?|==?)[ \t]*[0-9]")
"""Distinguishes an `Expect:` without a target from prose."""
_INLINE = re.compile(
    r"[ \t]*(?:where[ \t]+\w+[ \t]*=|\*{0,2}[^\W\d]\w*(?:[ \t]*,[ \t]*\w+)*[ \t]*[:=])"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and the lines under it.

    `name` is the set's name, or the target of an `Expect`; empty without one. `lines` are the first
    line of the body and the line after its last one; `inline` is the offset of text on the
    heading's own line, if any. `indent` is the heading's.
    """

    topic: Topic
    style: Style
    name: str
    heading: Range
    line: int
    indent: int
    lines: tuple[int, int]
    inline: int | None = None


def find_sections(source: ChunkText) -> tuple[list[Section], list[Problem]]:
    """Return the sections of a docstring, in order, and the problems of their headings."""
    sections: list[Section] = []
    problems: list[Problem] = []
    if "xample" not in source.text and "EXAMPLE" not in source.text and "Expect" not in source.text:
        return sections, problems
    line = 0
    while line < source.line_count:
        if (section := _section_at(source, line)) is None:
            if unclosed := _UNCLOSED.fullmatch(source.line(line)):
                start = source.line_bounds(line)[0] + unclosed.start("open")
                bracket = source.range(start, start + 1)
                problems.append(problem(MALFORMED, bracket, "`(` is never closed", SET_HELP))
            line += 1
            continue
        if not section.name and "(" in source.text_of(section.heading):
            missing, help = (
                ("set name", SET_HELP) if section.topic == "inputs" else ("target", TARGET_HELP)
            )
            message = f"missing {missing} in parentheses"
            problems.append(problem(MALFORMED, section.heading, message, help))
        sections.append(section)
        line = max(section.lines[1], line + 1)
    return sections, problems


def _section_at(source: ChunkText, line: int) -> Section | None:
    """Return the section whose heading is on this line, if any."""
    text = source.line(line)
    if (match := _HEADING.fullmatch(text)) is None:
        return None
    topic: Topic = "expect" if match["title"] == "Expect" else "inputs"
    name = (match["name"] or "").strip()
    if topic == "expect" and match["name"] is None and not _begins_conditions(source, line, match):
        return None
    start = source.line_bounds(line)[0]
    heading = source.range(start + match.start("heading"), start + match.end("heading"))
    indent = source.indent(line)
    after = match["rest"].strip()
    says_nothing = not after or after.startswith("#")
    if match["colon"] is None:
        if not says_nothing:
            return None
        if match["mark"] is not None and match["mark"].startswith(".."):
            end = _deeper_until(source, line + 1, indent)
            return Section(topic, "rest", name, heading, line, indent, (line + 1, end))
        if match["mark"] is None and _underlined(source, line):
            end = _numpydoc_until(source, line + 2, source.indent(line + 1))
            return Section(topic, "numpydoc", name, heading, line, indent, (line + 2, end))
        return None
    inline = None
    if not says_nothing:
        if topic == "inputs" and not _INLINE.match(match["rest"]):
            return None
        inline = start + match.start("rest")
    style: Style = "rest" if match["mark"] is not None or match["colon"] == "::" else "google"
    end = _deeper_until(source, line + 1, indent)
    return Section(topic, style, name, heading, line, indent, (line + 1, end), inline)


def _begins_conditions(source: ChunkText, line: int, match: re.Match[str]) -> bool:
    """Return whether a condition follows an `Expect` without a target, on its line or the next."""
    if match["colon"] is None:
        return False
    after = match["rest"]
    if after.strip() and not after.lstrip().startswith("#"):
        return _CONDITION.match(after) is not None
    below = line + 1
    while below < source.line_count and not source.line(below).strip():
        below += 1
    return (
        below < source.line_count
        and source.indent(below) > source.indent(line)
        and _CONDITION.match(source.line(below)) is not None
    )


def _underlined(source: ChunkText, line: int) -> bool:
    return line + 1 < source.line_count and _UNDERLINE.fullmatch(source.line(line + 1)) is not None


def _until(source: ChunkText, first: int, ends: Callable[[int], object]) -> int:
    """Return the line after the last one with text before a line that ends a section."""
    end = first
    for line in range(first, source.line_count):
        if source.line(line).strip():
            if ends(line):
                break
            end = line + 1
    return end


def _deeper_until(source: ChunkText, first: int, indent: int) -> int:
    """Return the line after the last one that is indented more than a heading."""
    return _until(source, first, lambda line: source.indent(line) <= indent)


def _numpydoc_until(source: ChunkText, first: int, indent: int) -> int:
    """Return the line after the last one before the next underlined heading or a dedent."""

    def ends(line: int) -> object:
        text = source.line(line)
        heading = _HEADING.fullmatch(text)
        is_heading = heading and heading["title"] != "Expect" and heading["colon"] is not None
        is_other = is_heading or _underlined(source, line) or _OTHER.match(text)
        return source.indent(line) < indent or is_other

    return _until(source, first, ends)


def whole_text(source: ChunkText) -> Section:
    """Return a section without heading whose body is the whole text."""
    first_line = source.range(0, source.line_bounds(0)[1])
    return Section("inputs", "google", "", first_line, 0, -1, (0, source.line_count))


@dataclass(frozen=True, slots=True)
class LogicalLine:
    """Offsets of an item: a line and its continuation lines (indented more, or inside brackets)."""

    start: int
    end: int


def logical_lines(source: ChunkText, section: Section) -> Iterator[LogicalLine]:
    """Yield the items of a section's body, without blank lines and comments."""
    if section.inline is not None:
        yield LogicalLine(section.inline, source.line_bounds(section.line)[1])
    start: int | None = None
    end = indent = depth = 0
    for line in range(*section.lines):
        first, last = source.line_bounds(line)
        blank = BLANK.match(source.text, first, last)
        if blank is not None and blank.end() == last:
            continue
        continues = start is not None and (
            source.indent(line) > indent or (depth > 0 and not _ITEM.match(source.line(line)))
        )
        if not continues:
            if start is not None:
                yield LogicalLine(start, end)
            text = source.line(line)
            blanks = len(text) - len(text.lstrip(" \t"))
            start, indent, depth = first + blanks, source.indent(line), 0
        depth = max(0, depth + opened(source.text, first, last))
        end = last
    if start is not None:
        yield LogicalLine(start, end)


def opened(text: str, start: int, end: int) -> int:
    """Return how many brackets a part of a text leaves open, outside of strings and comments."""
    depth = 0
    while start < end:
        if text[start] == "#":
            break
        if (string := STRING.match(text, start, end)) and string.end() > start:
            start = string.end()
            continue
        depth += (text[start] in "([{") - (text[start] in ")]}")
        start += 1
    return depth


def style_of(source: ChunkText) -> Style:
    """Return the style of a docstring; Google's if nothing else is recognized."""
    if _NUMPYDOC.search(source.text):
        return "numpydoc"
    return "rest" if _REST.search(source.text) else "google"


def heading_lines(title: str, style: Style) -> list[str]:
    """Return the lines of a section's heading."""
    match style:
        case "google":
            return [f"{title}:"]
        case "numpydoc":
            return [title, "-" * len(title)]
        case "rest":
            return [f":{title}:"]
