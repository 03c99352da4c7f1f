"""The text of a program's file in another language: JAX, a jaxpr, StableHLO, HLO, or a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jaxsight_source.api import write_program
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.options import SourceOptions
from jaxsight_source.program_text import ProgramText
from jaxsight_source.programs.contents import content_of, of_content
from jaxsight_source.stablehlo.places import read_from


def text_of(content: bytes, wanted: Mapping[str, Any]) -> ProgramText:
    """Return a file's program in a language.

    Args:
        content: of the file.
        wanted: `to`, a `ProgramLanguage`; and for Python the `SourceOptions`, and `linked` for the
            lines of StableHLO's text that its lines come from.

    Raises:
        UnreadableProgram: it contains none.
        Unsourceable: it cannot be written.
    """
    given = of_content(content, linked="linked" in wanted)
    kind = content_of(content)
    source = kind.value if kind is not None else ""
    equations = equation_count(given.jaxpr)
    opaque: tuple[str, ...] = ()
    if given.origin is not None:
        opaque = tuple(dict.fromkeys(call.target for call in given.origin.program.opaque))
    if wanted["to"] != "python":
        text = given.text(wanted["to"])
        return ProgramText(text, given.name, source, equations, opaque=opaque)
    written = write_program(given, SourceOptions(**wanted["options"]))
    return ProgramText(
        written.text,
        written.name,
        source,
        equations,
        written.source.proofs,
        written.ran.skipped,
        opaque,
        tuple(
            (number, line)
            for number, each in enumerate(written.lines)
            for line in sorted({line for one in each.equations for line in read_from(one)})
        ),
    )
