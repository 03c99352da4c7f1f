"""Program files on the command line: StableHLO, HLO and exports, in place of `FILE:FUNCTION`."""

from __future__ import annotations

import sys
from pathlib import Path

from jaxsight.cli.errors import CommandError
from jaxsight.cli.sources.arguments import STDIN
from jaxsight.files import reading
from jaxsight.text import units

LARGEST = 64 << 20
"""The maximum size of a program file, in bytes, as for `sourcerizer.programs`."""

_OF_PYTHON = frozenset({".py", ".pyi", ".pyw", ".ipynb"})


def is_program_file(text: str) -> bool:
    """Return whether an argument names a file without Python code, or stdin."""
    return text == STDIN or (reading.is_file(text) and Path(text).suffix not in _OF_PYTHON)


def read_program(text: str) -> bytes:
    """Return the content of a program file, or of stdin.

    Raises:
        CommandError: it cannot be read, or is too large.
    """
    try:
        if text == STDIN:
            content = sys.stdin.buffer.read(LARGEST + 1)
        else:
            with Path(text).open("rb") as file:
                content = file.read(LARGEST + 1)
    except OSError as error:
        raise CommandError(f"cannot read {text}: {error.strerror}") from error
    if len(content) > LARGEST:
        raise CommandError(f"{text} has more than {units.size(LARGEST)}")
    return content
