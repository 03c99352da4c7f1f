"""The text of a program's file in another language: JAX, a jaxpr, StableHLO, HLO, or a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

from jaxsight_source.api import write_program
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.errors import TooLarge
from jaxsight_source.jaxprs.graph import dot
from jaxsight_source.options import Options
from jaxsight_source.programs.contents import content_of, of_content
from jaxsight_source.programs.given import GivenProgram
from jaxsight_source.programs.lines import printed
from jaxsight_source.programs.program_text import ProgramText
from jaxsight_source.stablehlo.places import read_from


def text_of(content: bytes, wanted: Mapping[str, Any]) -> ProgramText:
    """Return a file's program in a language.

    Args:
        content: of the file.
        wanted: `to`, a `ProgramLanguage`; and for Python the `Options`, the function's `name`, and
            `linked` for the lines of StableHLO's text that its lines come from.

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
    with given.types():
        match wanted["to"]:
            case "jaxpr":
                text = f"{given.jaxpr}\n"
            case "graph":
                text = "".join(f"{line.text}\n" for line in dot(given.jaxpr, given.name))
            case "stablehlo" if given.origin is not None:
                text = printed(given.origin.artifact)
            case "hlo":
                text = _lowered(given).as_text("hlo")
            case _:
                return _python(given, wanted, source, equations, opaque)
    return ProgramText(text, given.name, source, equations, opaque=opaque)


def _lowered(given: GivenProgram) -> jax.stages.Lowered:
    call = given.call()
    return jax.jit(call.function).lower(*given.args, **given.kwargs)


def _python(
    given: GivenProgram,
    wanted: Mapping[str, Any],
    source: str,
    equations: int,
    opaque: tuple[str, ...],
) -> ProgramText:
    options = Options(**wanted["options"])
    name = wanted.get("name") or None
    try:
        written = write_program(given, options, name)
    except TooLarge:
        if wanted["options"].get("constants"):
            raise
        written = write_program(given, Options(**wanted["options"], constants="argument"), name)
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
