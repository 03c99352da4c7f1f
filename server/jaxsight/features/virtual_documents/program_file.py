"""The JAX source of a program file that an editor shows: StableHLO, HLO."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import PurePath

from jaxsight.features.model import Linked, VirtualText
from jaxsight.features.virtual_documents.sourcerized import NotSourcerized
from jaxsight.files import reading
from jaxsight.queries.engine import Engine
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.program_files import NotRead, NotTimely, program_text

ENDINGS = frozenset({".mlir", ".mlirbc", ".stablehlo", ".hlo", ".jaxexport"})
"""The endings of files that editors open as programs."""

_LARGEST = 64 << 20
"""The maximum size of a file in bytes, as in the terminal."""


def is_program_file(path: str) -> bool:
    return PurePath(path).suffix in ENDINGS


async def source_of_file(
    engine: Engine, path: str, options: TransformedSource, text: str | None
) -> VirtualText:
    """Return the source of a program, within the time limit of a compile.

    Args:
        text: the file's text as an editor has it; by default, the file is read.

    Raises:
        NotSourcerized: it cannot be read, written or verified.
    """
    project = engine.projects.of(path)
    if project.interpreter is None or project.held_back:
        raise NotSourcerized(project.problem or project.held_back)
    try:
        if text is None:
            content = await asyncio.to_thread(reading.data, path, _LARGEST)
        else:
            content = text.encode()
        request = {"to": "python", "options": asdict(options.plain), "linked": True}
        limit = project.settings.timeouts.compile
        shown = await program_text(project.interpreter.path, content, request, limit)
    except reading.UnreadableError as error:
        raise NotSourcerized(str(error)) from error
    except NotTimely as error:
        raise NotSourcerized(f"{error}; help: raise `timeouts.compile`") from error
    except NotRead as error:
        raise NotSourcerized(str(error), different=error.different) from error
    title = f"{PurePath(path).stem}.{options.style}.py"
    ran = tuple(proof for proof in shown.proofs if proof not in ("jaxpr", "stablehlo"))
    links = _links(shown.links, content.decode("utf-8", "replace")) if shown.links else ()
    return VirtualText(title, shown.text, links, equations=shown.equations, ran=ran)


def _links(pairs: Sequence[tuple[int, int]], text: str) -> tuple[Linked, ...]:
    """Return links from lines of a source to those of the program, without their indentation."""
    lines = text.split("\n")
    links = []
    for number, line in pairs:
        code = lines[line].rstrip()
        indent = len(code) - len(code.lstrip())
        where = Range(Position(line, indent), Position(line, len(code)))
        links.append(Linked(number, "", where))
    return tuple(links)
