"""Compile a chunk with the lines that it has in its file, and show its lines in tracebacks."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Callable
from types import CodeType

from jaxsight.rewriting.compiling import compiled as rewritten
from jaxsight.tracer.failures import UserError, failure
from jaxsight.wire.chunks import Chunk, chunk_file

Instrument = Callable[[ast.Module], ast.Module]
"""Rewrites the tree of a chunk so that its expressions are observed."""


def compiled(
    chunk: Chunk, path: str, code_file: str, future_flags: int, instrument: Instrument
) -> CodeType:
    """Return the code of a chunk of the file `path`, compiled under the file name `code_file`.

    Raises:
        UserError: it cannot be compiled.
    """
    try:
        return rewritten(
            chunk.text,
            code_file,
            instrument,
            above=chunk.above,
            flags=future_flags,
            parsed_as=chunk_file(path, chunk.id),
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(failure(error, "execute")) from error


def provide_lines(chunk: Chunk, code_file: str) -> None:
    """Provide the lines of a chunk's file for tracebacks."""
    # Python loads the lines of such a file only on request.
    linecache.cache[code_file] = (functools.partial(_as_file, chunk.text, chunk.above),)


def _as_file(text: str, above: int) -> str:
    """Return a chunk's text at its place in an otherwise empty file."""
    return "\n" * above + text
