"""Which objects are programs, and the call of each."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TypeAlias

import jax
from jax import export
from jax.extend.core import ClosedJaxpr

from jaxsight_source.compat.staging import is_jaxpr
from jaxsight_source.programs.contents import of_content
from jaxsight_source.programs.given import GivenProgram, of_jaxpr
from jaxsight_source.programs.lowered import of_exported, of_lowered, of_traced
from jaxsight_source.stablehlo.program import UnreadableProgram

LARGEST = 64 * 2**20
"""Bytes of a program's file, a choice: weights are arguments, and more could fill the memory."""

ProgramObject: TypeAlias = (
    ClosedJaxpr
    | jax.stages.Traced
    | jax.stages.Lowered
    | export.Exported
    | GivenProgram
    | Path
    | bytes
    | str
)
"""A program that has the types of its arguments.

Those of `jax.stages` and `Exported` also know parameters and pytrees. A path, or the content of a
file, is of StableHLO, HLO or a serialized `Exported`; a string is text of StableHLO or HLO.
"""


def given_program(value: object) -> GivenProgram | None:
    """Return a program as one to write, or None for anything else.

    Raises:
        TypeError: if it is incomplete, such as a jaxpr without its constants.
        UnreadableProgram: if a file or StableHLO cannot be read.
        OSError: if there is no such file.
    """
    if is_jaxpr(value):
        return of_jaxpr(value)
    match value:
        case GivenProgram():
            return value
        case jax.stages.Traced():
            return of_traced(value)
        case jax.stages.Lowered():
            return of_lowered(value)
        case export.Exported():
            return of_exported(value)
        case Path():
            return of_content(_content(value))
        case bytes() | bytearray():
            return of_content(bytes(value))
        case str():
            return of_content(value.encode())
        case jax.stages.Compiled():
            raise TypeError("a compiled function has no StableHLO; pass what it was compiled from")
        case _:
            return None


def _content(path: Path) -> bytes:
    """Return the content of a file; a pipe would be waited for, and a device has no end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableProgram(f"{path} is not a file")
    if status.st_size > LARGEST:
        raise UnreadableProgram(f"{path} is larger than 64 MiB")
    return path.read_bytes()
