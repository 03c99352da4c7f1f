"""Completions inside a section of example inputs; outside, only those of its heading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxsight.examples.binding import Signature
from jaxsight.examples.docstrings.lines import DeclaredSet, Written, read_docstring, read_source
from jaxsight.examples.docstrings.sections import (
    LogicalLine,
    Section,
    find_sections,
    heading_lines,
    logical_lines,
    opened,
    style_of,
)
from jaxsight.examples.notation.parser import Expression
from jaxsight.examples.notation.shapes import NAME as MESH
from jaxsight.examples.notation.shapes import MeshAxes
from jaxsight.examples.notation.tokens import ChunkText, Token, TokenReader
from jaxsight.examples.notation.values import DTYPES, names_in, short, show_size, sizes_of
from jaxsight.features.model import Completion, CompletionKind
from jaxsight.queries.engine import Engine
from jaxsight.source.definitions import Function
from jaxsight.source.text import Edit, Position

_BEFORE, _AFTER = re.compile(r"\w*\Z"), re.compile(r"\w*")
_BEGUN_HEADING = re.compile(
    r"[ \t]*(?::|\.\.[ \t]+rubric::[ \t]*)?(?P<title>[A-Za-z]{2}[A-Za-z ]*)"
)


@dataclass(frozen=True)
class _Cursor:
    """The cursor: `start` and `end` of the word around it, and its logical line.

    `sizes` are those of the settings.
    """

    source: ChunkText
    section: Section
    start: int
    end: int
    line: LogicalLine
    function: Function
    sizes: Mapping[str, int]

    def propose(self, label: str, kind: CompletionKind, text: str, detail: str = "") -> Completion:
        return Completion(label, kind, Edit(self.source.range(self.start, self.end), text), detail)

    @property
    def ends_line(self) -> bool:
        """Whether the line ends after the word."""
        _, end = self.source.line_bounds(self.source.line_of(self.end))
        return not self.source.text[self.end : end].strip()

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the line before the word."""
        reader = TokenReader(self.source, self.line.start, max(self.line.start, self.start))
        tokens = []
        while not reader.token.is_a("end"):
            tokens.append(reader.advance())
        return tokens

    @cached_property
    def declared(self) -> DeclaredSet:
        """The set around the cursor, without the cursor's line."""
        text = self.source.text
        end = max(self.line.end, self.end)
        blanked = re.sub(r"[^\r\n]", " ", text[self.line.start : end])
        source = ChunkText(text[: self.line.start] + blanked + text[end:], self.source.origin)
        heading = self.section.heading
        found = (each for each in read_source(source).sets if each.heading == heading)
        return next(found, DeclaredSet(self.section.name, heading))


async def completions(engine: Engine, path: str, position: Position) -> list[Completion]:
    """Return completions inside a section of example inputs; none elsewhere."""
    if (document := await engine.documents.read(path)) is None:
        return []
    if (there := document.module.function_at(position)) is None:
        return []
    chunk, function = there
    sizes = engine.projects.of(path).outside.sizes
    proposals = complete(function, position.up(chunk.first_line), sizes)
    return [proposal.shifted(chunk.first_line) for proposal in proposals]


def complete(function: Function, position: Position, sizes: Mapping[str, int]) -> list[Completion]:
    """Return completions at a position of the function's chunk; `sizes` are of the settings."""
    if function.docstring is None:
        return []
    source = ChunkText(function.docstring.text, function.docstring.start)
    if (offset := source.offset(position)) is None:
        return []
    sections, _ = find_sections(source)
    if (section := _section_around(source, sections, offset)) is None:
        return list(_headings(source, sections, offset))
    before, after = _BEFORE.search(source.text, 0, offset), _AFTER.match(source.text, offset)
    start, end = before.start() if before else offset, after.end() if after else offset
    line = _line_around(source, section, start)
    cursor = _Cursor(source, section, start, end, line, function, sizes)
    line_start = max(line.start, source.line_bounds(source.line_of(start))[0])
    # A comment hides the character that is appended at the cursor from the reader.
    probe = TokenReader(ChunkText(source.text[line_start:start] + "\x00"))
    while not probe.token.is_a("end"):
        if probe.token.text == "\x00":
            return list(_inside(cursor))
        probe.advance()
    return []


def _section_around(source: ChunkText, sections: Sequence[Section], offset: int) -> Section | None:
    """Return the section that a line typed at the offset belongs to."""
    line = source.line_of(offset)
    above = (each for each in reversed(sections) if each.topic == "inputs" and each.line <= line)
    if (section := next(above, None)) is None:
        return None
    if section.line == line:
        heading_end = source.offset(section.heading.end)
        colon = -1 if heading_end is None else source.text.find(":", heading_end, offset)
        return section if colon >= 0 else None
    first, end = section.lines
    between = "".join(source.line(n) for n in range(end, line + 1))
    column = offset - source.line_bounds(line)[0]
    least = section.indent + (section.style != "numpydoc")
    is_inside = line < end or (not between.strip() and column >= least)
    return section if line >= first and is_inside else None


def _line_around(source: ChunkText, section: Section, offset: int) -> LogicalLine:
    """Return the logical line that the offset continues; an empty one if it begins one."""
    if source.line_of(offset) == section.line and section.inline is None:
        return LogicalLine(offset, offset)
    above = [line for line in logical_lines(source, section) if line.start <= offset]
    if above and (offset <= above[-1].end or opened(source.text, above[-1].start, offset) > 0):
        return above[-1]
    return LogicalLine(offset, offset)


def _inside(cursor: _Cursor) -> Iterator[Completion]:
    tokens, declared = cursor.tokens, cursor.declared
    words = [token.text for token in tokens]
    is_free = MESH not in Signature(cursor.function).plain
    open_ = _brackets(tokens)
    # An open bracket is an array's if it follows a dtype, or a key's `>`.
    in_shape = any(
        index > 0
        and tokens[index].is_("[")
        and (tokens[index - 1].is_a("name") or tokens[index - 1].is_(">"))
        for index in open_
    )
    # The innermost one is a dict's, and its next item has no `:` yet.
    at_dict_key = bool(open_) and tokens[open_[-1]].is_("{") and not tokens[-1].is_(":")
    if words[:1] == ["where"] and words[1:2] not in ([":"], ["="], [","]):
        if words[-1] in ("where", ","):  # sizes that shapes use and that are not defined yet
            defined = {size.name for size in declared.sizes} | set(words)
            used = (name for example in declared.examples for name in _size_names(example.value))
            for name in dict.fromkeys(name for name in used if name not in defined):
                yield cursor.propose(name, "size", f"{name}=" if cursor.ends_line else name)
    elif (
        words[:1] == ["Expect"]
        or (words[:1] == [MESH] and is_free)
        or ("=" in words and ":" not in words[: words.index("=")])
    ):
        return
    elif ":" not in words:
        if not words or words[-1] == ",":
            yield from _arguments(cursor)
        if not words:
            if is_free and all(line.name != MESH for line in declared.examples):
                yield cursor.propose(MESH, "keyword", f"{MESH}: ", "mesh: data=2, model=4")
            yield cursor.propose("where", "keyword", "where ", "sizes: where B=32, D=512")
            contract = "Expect (h100): kernels <= 3, temp <= 4 MiB"
            yield cursor.propose("Expect", "keyword", "Expect (", contract)
    elif in_shape:
        is_axis = "@" in words[open_[-1] :] or words[open_[-1] - 1] == "@"
        if not is_axis and words[-1] in ("[", ",", "+", "-", "*", "//", "%", "("):
            yield from _known_sizes(cursor)
    elif words[-1] in (":", ",", "(", "[", "~") and not at_dict_key:
        for dtype in DTYPES:
            yield cursor.propose(short(dtype), "dtype", short(dtype), dtype)
        yield cursor.propose("key<fry>", "dtype", "key<fry>", "typed PRNG keys")


def _arguments(cursor: _Cursor) -> Iterator[Completion]:
    signature = Signature(cursor.function)
    covered = {g.name for g in cursor.declared.examples} | {token.text for token in cursor.tokens}
    shared = {g.name for s in _class_sets(cursor.function) for g in s.examples}
    for parameter in signature.parameters:
        name = parameter.name
        if name in covered or (name == signature.self_name and name in shared):
            continue
        stars = {"var_positional": "*", "var_keyword": "**"}.get(parameter.kind, "")
        sign = " = " if name == signature.self_name else ": "
        text = stars + name + (sign if cursor.ends_line else "")
        detail = parameter.annotation or ""
        if parameter.default is not None:
            detail = f"{detail} = {parameter.default}".strip()
        yield cursor.propose(stars + name, "argument", text, detail)


def _class_sets(function: Function) -> tuple[DeclaredSet, ...]:
    return read_docstring(function.class_docstring).sets


def _known_sizes(cursor: _Cursor) -> Iterator[Completion]:
    sizes_shown = {name: f"{value} (settings)" for name, value in cursor.sizes.items()}
    # The set around the cursor has the sizes of those of the class, and of the first one.
    first = read_docstring(cursor.function.docstring).sets[:1]
    for section in (*_class_sets(cursor.function), *first, cursor.declared):
        sizes_shown |= {d.name: show_size(d.size) for d in section.sizes}
    names = [n for g in cursor.declared.examples for n in _size_names(g.value)]
    for name in dict.fromkeys((*sizes_shown, *names)):
        yield cursor.propose(name, "size", name, sizes_shown.get(name, ""))


def _size_names(value: Written) -> list[str]:
    if isinstance(value, Expression):
        return []
    if isinstance(value, MeshAxes):
        return [name for axis in value.axes for name in names_in(axis.size)]
    return [name for size in sizes_of(value) for name in names_in(size)]


def _brackets(tokens: list[Token]) -> list[int]:
    """Return the indices of the opening brackets that are not closed at the end."""
    open_: list[int] = []
    for index, token in enumerate(tokens):
        if token.is_("(", "[", "{"):
            open_.append(index)
        elif token.is_(")", "]", "}") and open_:
            open_.pop()
    return open_


def _headings(source: ChunkText, sections: Sequence[Section], offset: int) -> Iterator[Completion]:
    """Yield completions of a line that contains only the beginning of a heading."""
    line = source.line_of(offset)
    start, end = source.line_bounds(line)
    begun = _BEGUN_HEADING.fullmatch(source.text, start, offset)
    if begun is None or source.text[offset:end].strip():
        return
    title = begun["title"]
    first = begun.start("title")
    blanks = len(source.line(line)) - len(source.line(line).lstrip(" \t"))
    indent = source.text[start : start + blanks] if line else " " * source.indent(0)
    named = any(section.topic == "inputs" for section in sections)
    range = source.range(first, offset)
    if "Example inputs".lower().startswith(title.lower()):
        name = "Example inputs (name)" if named else "Example inputs"
        style = style_of(source) if begun.start("title") == start + blanks else "google"
        text = ("\n" + indent).join(heading_lines(name, style))
        if style == "rest":
            # The colon before the title may be typed already.
            text = text if source.text[first - 1 : first] != ":" else text[1:]
        detail = "example inputs to trace the function with"
        yield Completion(f"{name}:", "keyword", Edit(range, text), detail)
    if "Expect (".lower().startswith(title.lower()):
        detail = "Expect (h100): kernels <= 3"
        yield Completion("Expect", "keyword", Edit(range, "Expect ("), detail)
