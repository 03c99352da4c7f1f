"""Read the lines of a section: examples for parameters, sizes, and contracts.

A malformed line is a problem at its wrong token; the lines after it are still read.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from jaxsight.examples.docstrings.sections import (
    TARGET_HELP,
    Section,
    find_sections,
    logical_lines,
    whole_text,
)
from jaxsight.examples.notation.contracts import Expect, read_contract
from jaxsight.examples.notation.parser import Expression, parse_value, read_expression
from jaxsight.examples.notation.shapes import NAME as MESH
from jaxsight.examples.notation.shapes import MeshAxes, begins_mesh, read_mesh, read_size
from jaxsight.examples.notation.tokens import ChunkText, TokenReader
from jaxsight.examples.notation.values import Node, Size
from jaxsight.examples.problems import (
    CONFLICT,
    MALFORMED,
    MALFORMED_EXPECT,
    Malformed,
    Problem,
    problem,
    quoted,
)
from jaxsight.source.definitions import Docstring
from jaxsight.source.limits import docstring_problem
from jaxsight.source.text import Position, Range

_DUPLICATE_HELP = "remove one, or give each a set of its own: `Example inputs (NAME):`"

_DOCSTRINGS_KEPT = 256
"""Docstrings whose sections are kept: those of the functions of a few open files."""

_SECTION = re.compile(r"^[ \t]*:?(?:example inputs|Expect)\b", re.MULTILINE | re.IGNORECASE)


Written = Node | Expression | MeshAxes
"""What is written for a name."""


@dataclass(frozen=True, slots=True)
class ExampleLine:
    """An example for one name, or the mesh of the section.

    `stars` is 1 for `*args`, 2 for `**kwargs`; `range` includes them.
    """

    name: str
    stars: int
    value: Written
    range: Range


@dataclass(frozen=True, slots=True)
class SizeDefinition:
    """A size defined by a `where`."""

    name: str
    size: Size
    range: Range


@dataclass(slots=True)
class DeclaredSet:
    """A section as written; not changed once it has been read.

    `spoiled` are the names on malformed lines.
    """

    name: str
    heading: Range
    examples: list[ExampleLine] = field(default_factory=list)
    sizes: list[SizeDefinition] = field(default_factory=list)
    expects: list[Expect] = field(default_factory=list)
    spoiled: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Declared:
    """The declarations of a docstring or a project example.

    `expects` are the contracts before the first set.
    """

    sets: tuple[DeclaredSet, ...] = ()
    expects: tuple[Expect, ...] = ()
    problems: tuple[Problem, ...] = ()


@functools.lru_cache(maxsize=_DOCSTRINGS_KEPT)
def read_docstring(docstring: Docstring | None) -> Declared:
    """Return the sections of a docstring, cached because most edits are below it."""
    if docstring is None:
        return Declared()
    start = docstring.start
    if reason := docstring_problem(docstring.text):
        if _SECTION.search(docstring.text) is None:
            return Declared()
        first = Range(start, Position(start.line, start.column + 1))
        return Declared(problems=(problem(MALFORMED, first, reason, "shorten the docstring"),))
    return read_source(ChunkText(docstring.text, start))


def read_project(text: str) -> Declared:
    """Return the declarations of a project example: sections, or the lines of a single one."""
    source = ChunkText(text)
    declared = read_source(source)
    if declared.sets or declared.problems:
        return declared
    return Declared((_read_set(source, whole_text(source)),))


def read_source(source: ChunkText) -> Declared:
    """Return the sections of a text, with the problems of their headings."""
    sections, problems = find_sections(source)
    sets: list[DeclaredSet] = []
    loose: list[Expect] = []
    for section in sections:
        if section.topic == "inputs":
            if any(section.name == earlier.name for earlier in sets):
                message = (
                    f"duplicate example set {quoted(section.name)}"
                    if section.name
                    else "more than one unnamed example set"
                )
                help = "name each set differently: `Example inputs (NAME):`"
                problems.append(problem(CONFLICT, section.heading, message, help))
            sets.append(_read_set(source, section))
            continue
        first, past = section.lines
        end = source.line_bounds(max(section.line, past - 1))[1]
        if (start := section.inline) is None:
            start = source.line_bounds(first)[0] if first < past else end
        reader = TokenReader(source, start, end)
        expect, wrong = read_contract(reader, section.name, section.heading)
        problems += wrong
        (sets[-1].expects if sets else loose).append(expect)
    return Declared(tuple(sets), tuple(loose), tuple(problems))


def _read_set(source: ChunkText, section: Section) -> DeclaredSet:
    declared = DeclaredSet(section.name, section.heading)
    names = set[tuple[str, int]]()
    for line in logical_lines(source, section):
        reader = TokenReader(source, line.start, line.end)
        first, after = reader.token, reader.peek()
        try:
            if first.kind == "name" and first.text == "Expect" and not after.is_("=", ","):
                _read_expect(declared, reader, line.end)
            elif first.kind == "name" and first.text == "where" and after.kind in ("name", "end"):
                _read_sizes(declared, reader)
            else:
                _read_example(declared, names, reader, line.end)
        except Malformed as malformed:
            declared.problems.append(malformed.problem)
    return declared


def _read_example(
    declared: DeclaredSet, known: set[tuple[str, int]], reader: TokenReader, end: int
) -> None:
    """Read `x, y: f32[8]`; `known` are the names before, with their stars."""
    names: list[tuple[str, int, Range]] = []
    try:
        names.append(_name(reader))
        while reader.token.is_(","):
            reader.advance()
            names.append(_name(reader))
        name = names[0][0]
        if reader.token.is_("="):
            if len(names) > 1:
                raise reader.fail(
                    "`=` takes a single parameter",
                    help="write one line for each parameter; an example cannot be unpacked",
                )
            equals = reader.advance()
            value: Written = read_expression(reader.source, equals.end, end, name)
        elif reader.token.is_(":"):
            reader.advance()
            is_mesh = [(name, stars) for name, stars, _ in names] == [(MESH, 0)]
            if is_mesh and begins_mesh(reader):
                value = read_mesh(reader)
            else:
                value = parse_value(reader, name)
            reader.finish()
        else:
            raise reader.expected(
                f"`:` or `=` after {quoted(name)}",
                help=f"write `{name}: EXAMPLE`, or `{name} = EXPRESSION`",
            )
    except Malformed:
        declared.spoiled.update(name for name, _, _ in names)
        raise
    for name, stars, range in names:
        if (name, stars) in known:
            message = f"duplicate example for {quoted(name)}"
            declared.problems.append(problem(CONFLICT, range, message, _DUPLICATE_HELP))
            continue
        known.add((name, stars))
        declared.examples.append(ExampleLine(name, stars, value, range))


def _name(reader: TokenReader) -> tuple[str, int, Range]:
    start = reader.token.start
    stars = 0
    if reader.token.is_("*", "**"):
        stars = len(reader.advance().text)
    if reader.token.kind != "name":
        raise reader.expected("a parameter name")
    return reader.advance().text, stars, reader.range_from(start)


def _read_sizes(declared: DeclaredSet, reader: TokenReader) -> None:
    reader.advance()
    while True:
        name = reader.token
        if name.kind != "name":
            raise reader.expected("a size after `where`", help="write a size such as `where B=32`")
        reader.advance()
        reader.take("=", f"`=` after {quoted(name.text)}", help=f"write `{name.text}=32`")
        size = read_size(reader)
        range = reader.token_range(name)
        if any(name.text == earlier.name for earlier in declared.sizes):
            message = f"duplicate definition of size {quoted(name.text)}"
            declared.problems.append(problem(CONFLICT, range, message, "remove one of them"))
        else:
            declared.sizes.append(SizeDefinition(name.text, size, range))
        if reader.token.kind == "end":
            return
        reader.take(",", "`,` or the end of the line")


def _read_expect(declared: DeclaredSet, reader: TokenReader, end: int) -> None:
    """Read `Expect (h100): kernels <= 3`; without a target it is for the configured one."""
    start = reader.advance().start
    target = ""
    try:
        if not reader.token.is_(":"):
            opening = reader.take("(", "`(` after `Expect`", help=TARGET_HELP)
            while not reader.token.is_(")"):
                reader.check_closed(opening, ")")
                reader.advance()
            closing = reader.advance()
            if not (target := reader.source.text[opening.end : closing.start].strip()):
                raise reader.fail("missing target in parentheses", closing, help=TARGET_HELP)
        range = reader.range_from(start)
        colon = reader.take(":")
    except Malformed as malformed:
        wrong = malformed.problem
        raise Malformed(
            problem(MALFORMED_EXPECT, wrong.range, wrong.message, wrong.help)
        ) from malformed
    conditions = TokenReader(reader.source, colon.end, end)
    expect, problems = read_contract(conditions, target, range)
    declared.expects.append(expect)
    declared.problems += problems
