"""A first section of example inputs for a function, from its signature and annotations."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from itertools import groupby

from jaxsight.examples.annotations import example_of
from jaxsight.examples.docstrings.lines import read_docstring
from jaxsight.examples.docstrings.style import Style, heading_lines, style_of
from jaxsight.examples.notation.chunk_text import ChunkText
from jaxsight.examples.notation.meshes import NAME as MESH
from jaxsight.examples.notation.values import names_in, show, sizes_of
from jaxsight.examples.signature import Signature
from jaxsight.source.functions import Docstring, Function, Parameter
from jaxsight.source.text import Edit, Position, Range

ARRAY = "f32[8, 8]"
"""The example of a parameter without any information."""

FIRST_SIZES = (8, 16, 32, 64)
"""Different sizes reveal mix-ups that equal ones hide."""

_BY_ANNOTATION = {
    "int": "1",
    "float": "1.0",
    "complex": "1j",
    "bool": "True",
    "str": "'name'",
    "bytes": "b''",
    "None": "None",
}
_KEYS = re.compile(r"(?:.*_)?(?:key|rng|rngs|prng)")
_PARAMETERS = re.compile(r"(?:.*_)?params|weights")
_MESHES = re.compile(r"(?:(?:\w+\.)*Mesh)?")
_CALLABLES = re.compile(r"(?:\w+\.)*Callable\b")


def skeleton(function: Function) -> Edit:
    """Return the edit that adds a first section of example inputs."""
    return section_edit(function, _lines(function))


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


def _lines(function: Function) -> list[str]:
    """Return the lines of the section.

    Parameters with a default have none, nor does `self` if the class's docstring has an example of
    it.
    """
    signature = Signature(function)
    shared = read_docstring(function.class_docstring).sets[:1]
    covered = {g.name for declared in shared for g in declared.examples}
    defined = {d.name for declared in shared for d in declared.sizes}
    lines: list[str] = []
    sizes: dict[str, int] = {}
    examples: list[tuple[str, str]] = []
    for parameter in signature.required:
        if parameter.name in covered:
            continue
        if parameter.name == signature.self_name:
            lines.append(f"{parameter.name} = {signature.class_name}()")
            continue
        node = example_of(parameter.annotation)
        if node is None:
            written = _guess(parameter, parameter.name in function.static_names)
            examples.append((parameter.name, written))
            continue
        examples.append((parameter.name, f": {show(node)}"))
        for name in (n for size in sizes_of(node) for n in names_in(size)):
            if name not in defined:
                sizes.setdefault(name, FIRST_SIZES[len(sizes) % len(FIRST_SIZES)])
    for written, group in groupby(examples, key=lambda example: example[1]):
        lines.append(", ".join(name for name, _ in group) + written)
    if sizes:
        lines.append("where " + ", ".join(f"{name}={value}" for name, value in sizes.items()))
    return lines


def _guess(parameter: Parameter, static: bool) -> str:
    """Return the rest of a parameter's line, from its annotation or its name."""
    annotation = (parameter.annotation or "").strip("'\" ")
    if (value := _BY_ANNOTATION.get(annotation.partition(" |")[0])) is not None:
        return f": {value}"
    if (choice := _first_choice(annotation)) is not None:
        return f": {choice}"
    if parameter.name == MESH and _MESHES.fullmatch(annotation):
        return ": data=2"
    if _CALLABLES.match(annotation):
        return " = lambda x: x"
    if static:
        return ": 1"
    if _KEYS.fullmatch(parameter.name):
        return ": key<fry>[]"
    if _PARAMETERS.fullmatch(parameter.name):
        return f": {{'w': {ARRAY}, 'b': f32[8]}}"
    return f": {ARRAY}"


def _first_choice(annotation: str) -> str | None:
    """Return the first value of a `Literal[...]`."""
    try:
        tree = ast.parse(annotation, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match tree:
        case ast.Subscript(
            value=ast.Name(id="Literal") | ast.Attribute(attr="Literal"), slice=inside
        ):
            first = inside.elts[0] if isinstance(inside, ast.Tuple) and inside.elts else inside
            return repr(first.value) if isinstance(first, ast.Constant) else None
        case _:
            return None


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
