"""Files of programs, told apart by what they contain, not by their names."""

from __future__ import annotations

import re
import stat
from enum import Enum
from pathlib import Path
from typing import TypeAlias

import jax
from jax import export
from jax.extend.core import ClosedJaxpr

from jaxsight_source.compat.staging import is_jaxpr
from jaxsight_source.hlo import reading as hlo
from jaxsight_source.programs import bare
from jaxsight_source.stablehlo.program import UnreadableProgram
from jaxsight_source.stablehlo.reading import mesh_devices

_BYTECODE = b"ML\xefR"
"""How MLIR bytecode begins (https://mlir.llvm.org/docs/BytecodeFormat)."""

_MLIR_WORD = re.compile(r'(?:module|func\.func|"?builtin\.module"?)\b|[#!][\w.]+ *=')
"""The first word of an MLIR text, after comments."""


class Content(Enum):
    """What a file contains."""

    STABLEHLO = "StableHLO text"
    BYTECODE = "StableHLO bytecode"
    HLO = "HLO text"
    PROTO = "HLO proto"
    EXPORTED = "serialized jax.export.Exported"


def content_of(content: bytes) -> Content | None:
    """Return the format of a file's content, or None if it is none of them."""
    if content.startswith(_BYTECODE):
        return Content.BYTECODE
    head = content[:4096]
    if b"\0" in head or not _is_text(head):
        if _BYTECODE in content:
            return Content.EXPORTED
        # Field 1 of an `HloModuleProto` or `HloProto`, a string or message.
        return Content.PROTO if content.startswith(b"\n") else None
    text = re.sub(r"^(?:\s|//[^\n]*\n?)*", "", content.decode("utf-8", "replace"))
    if _MLIR_WORD.match(text):
        return Content.STABLEHLO
    if "HloModule" in text[:65536]:
        return Content.HLO
    return None


def _is_text(head: bytes) -> bool:
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(head) - 4 and len(head) == 4096  # a character is cut
    return True


def of_content(content: bytes, *, linked: bool = False) -> bare.BareProgram:
    """Return the program that a file contains; with `linked`, with lines of StableHLO's text.

    Raises:
        UnreadableProgram: it contains none, or one that this version of JAX cannot read.
    """
    match content_of(content):
        case None:
            first = b"".join(content.strip().splitlines()[:1])[:40]
            found = f"`{first.decode('utf-8', 'backslashreplace')}`" if first else "nothing"
            message = f"expected StableHLO, HLO or a serialized Exported, found {found}"
            raise UnreadableProgram(message)
        case Content.EXPORTED:
            return bare.of_exported(deserialized(content))
        case Content.HLO | Content.PROTO:
            names = hlo.parameter_names(content)
            return bare.of_stablehlo(hlo.stablehlo_of(content), is_exact=False, names=names)
        case Content.BYTECODE:
            return bare.of_stablehlo(content)
        case Content.STABLEHLO:
            return bare.of_stablehlo(content.decode("utf-8", "replace"), linked=linked)


def devices_of(content: bytes) -> int:
    """Return how many devices a file's program is for, by its meshes; 1 where it has none.

    Raises:
        UnreadableProgram: the file is damaged.
    """
    match content_of(content):
        case Content.EXPORTED:
            return mesh_devices(deserialized(content).mlir_module_serialized)
        case Content.BYTECODE:
            return mesh_devices(content)
        case Content.STABLEHLO:
            return mesh_devices(content.decode("utf-8", "replace"))
        case _:
            return 1


def deserialized(content: bytes) -> export.Exported:
    """Return a serialized `Exported`.

    Raises:
        UnreadableProgram: it is damaged, or needs a package that is missing.
    """
    try:
        return export.deserialize(bytearray(content))
    except ImportError:
        raise UnreadableProgram(
            "a serialized Exported needs the package flatbuffers; help: pip install flatbuffers"
        ) from None
    except Exception as error:  # of a truncated file, flatbuffers raises anything
        why = " ".join(str(error).split()) or type(error).__name__
        raise UnreadableProgram(f"the serialized Exported is damaged or too old: {why}") from error


LARGEST = 64 * 2**20
"""Bytes of a program's file, a choice: weights are arguments, and more could fill the memory."""

ProgramObject: TypeAlias = (
    ClosedJaxpr
    | jax.stages.Traced
    | jax.stages.Lowered
    | export.Exported
    | bare.BareProgram
    | Path
    | bytes
    | str
)
"""A program that has the types of its arguments.

Those of `jax.stages` and `Exported` also know parameters and pytrees. A path, or the content of a
file, is of StableHLO, HLO or a serialized `Exported`; a string is text of StableHLO or HLO.
"""


def bare_program(value: object) -> bare.BareProgram | None:
    """Return a program as one to write, or None for anything else.

    Raises:
        TypeError: if it is incomplete, such as a jaxpr without its constants.
        UnreadableProgram: if a file or StableHLO cannot be read.
        OSError: if there is no such file.
    """
    if is_jaxpr(value):
        return bare.of_jaxpr(value)
    match value:
        case bare.BareProgram():
            return value
        case jax.stages.Traced():
            return bare.of_traced(value)
        case jax.stages.Lowered():
            return bare.of_lowered(value)
        case export.Exported():
            return bare.of_exported(value)
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
