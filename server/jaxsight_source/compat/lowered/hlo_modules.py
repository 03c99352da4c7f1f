"""HLO modules: their text, their protos, and XLA's conversion to StableHLO.

Private API used: `jaxlib._hlo` (the classes of HLO modules; in `jaxlib.xla_client._xla` before
jaxlib 0.8.2), `jaxlib._xla().mlir.hlo_to_stablehlo`, and the MLIR dialects of jaxlib that
the conversion's result has. The conversion leaves operations of the dialect `mhlo` where StableHLO
has none, such as fusions (`xla/hlo/translate/hlo_to_mhlo`).
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from jax.interpreters import mlir
from jaxlib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import mhlo

from jaxsight_source.compat.lowered.mlir import require_few

_PLACE = re.compile(r".*\nwas parsing (\d+:\d+): error: (.*?)(?:, error:.*)?\n")
_CLASS = re.compile(r"^[A-Z_]+: ")


class InvalidModule(ValueError):
    """XLA reads no module from a text or a proto, or cannot convert it; the message says why."""


def proto_of_text(text: str) -> bytes:
    """Return the `HloModuleProto` of an HLO text."""
    try:
        module = _classes().hlo_module_from_text(text)
    except Exception as error:
        raise InvalidModule(_reason(error)) from error
    return bytes(module.as_serialized_hlo_module_proto())


def text_of_proto(proto: bytes, *, metadata: bool = False) -> str:
    """Return the text of an `HloModuleProto`, with all numbers of constants or with metadata."""
    classes = _classes()
    options = classes.HloPrintOptions()
    options.print_large_constants = not metadata
    options.print_metadata = metadata
    try:
        module = classes.HloModule.from_serialized_hlo_module_proto(proto)
        return str(module.to_string(options))
    except Exception as error:
        raise InvalidModule(_reason(error)) from error


def stablehlo_of_proto(proto: bytes) -> Any:
    """Return the `ir.Module` of an `HloModuleProto`: StableHLO with operations of `mhlo`."""
    try:
        bytecode = _xla().mlir.hlo_to_stablehlo(proto)
    except Exception as error:
        raise InvalidModule(_reason(error)) from error
    return stablehlo_module(bytecode)


def stablehlo_module(program: str | bytes) -> Any:
    """Return the `ir.Module` of an MLIR text or bytecode."""
    context = mlir.make_ir_context()
    mhlo.register_mhlo_dialect(context)
    try:
        with context:
            module = ir.Module.parse(program)
        require_few(module, program)
    except (ir.MLIRError, ValueError) as error:
        raise InvalidModule(_reason(error)) from error
    return module


def _classes() -> Any:
    try:
        return importlib.import_module("jaxlib._hlo")
    except ImportError:
        return _xla()


def _xla() -> Any:
    return getattr(xla_client, "_xla")  # noqa: B009 - not exported


def _reason(error: Exception) -> str:
    """Return XLA's message in one line: of a syntax error, the place and what is expected there."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if place := _PLACE.match("\n".join(lines)):
        return f"at {place[1]}: {place[2]}"
    first = " ".join(lines[: 2 if lines[0].endswith(":") else 1])
    return _CLASS.sub("", first)
