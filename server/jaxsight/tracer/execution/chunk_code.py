"""Compile a chunk with the lines that it has in its file, and show its lines in tracebacks."""

from __future__ import annotations

import linecache
from types import CodeType

from jaxsight.tracer.failures import UserError, failure
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.chunks import Chunk


def compiled(chunk: Chunk, code_file: str, future_flags: int, recorder: Recorder) -> CodeType:
    """Return the code of a chunk, compiled under the file name `code_file`.

    Raises:
        UserError: it cannot be compiled.
    """
    try:
        return recorder.compiled(chunk, code_file, future_flags)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(failure(error, "execute")) from error


def provide_lines(chunk: Chunk, code_file: str) -> None:
    """Provide the lines of a chunk's file for tracebacks."""

    def lines(text: str = chunk.text, above: int = chunk.above) -> str:
        return "\n" * above + text

    # Python loads the lines of such a file only on request.
    linecache.cache[code_file] = (lines,)
