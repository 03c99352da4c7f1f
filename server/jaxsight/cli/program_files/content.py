"""Program files on the command line: StableHLO, HLO and exports, in place of `FILE:FUNCTION`."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.sources.arguments import STDIN
from jaxsight.files import reading
from jaxsight.text import units

_OF_PYTHON = frozenset({".py", ".pyi", ".pyw", ".ipynb"})


def is_program_file(text: str) -> bool:
    """Return whether an argument names a file without Python code, or stdin."""
    return text == STDIN or (reading.is_file(text) and Path(text).suffix not in _OF_PYTHON)


def read_program(text: str) -> bytes:
    """Return the content of a program file, or of stdin.

    Raises:
        CommandError: it cannot be read, or is too large.
    """
    if text == STDIN:
        content = sys.stdin.buffer.read(reading.SOURCE + 1)
        if len(content) > reading.SOURCE:
            raise CommandError(f"stdin has more than {units.size(reading.SOURCE)}")
        return content
    try:
        return reading.data(text)
    except reading.UnreadableError as error:
        raise CommandError(str(error)) from error
