"""MLIR as jaxlib ships it. Applies to JAX 0.8 to 0.12.

Private API used: `jaxlib.mlir` (its `ir` and the StableHLO dialect: JAX has no public reader of
StableHLO), and `make_ir_context`, which registers the dialects that JAX's programs use.
"""

from __future__ import annotations

from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as dialect

__all__ = ["dialect", "ir", "parse", "print_without_locations"]

_ARTIFACT = b"ML\xefR"
"""How MLIR bytecode begins (https://mlir.llvm.org/docs/BytecodeFormat)."""


def parse(program: str | bytes) -> ir.Module:
    """Return the module of a text, of bytecode, or of a portable artifact.

    Raises:
        ValueError: if it is none of these; the message is MLIR's.
    """
    context = make_ir_context()
    with context:
        if isinstance(program, bytes) and program.startswith(_ARTIFACT):
            try:
                return dialect.deserialize_portable_artifact(context, program)
            except Exception:  # noqa: BLE001 - bytecode of another dialect, which MLIR reads itself
                return ir.Module.parse(program, context)
        try:
            return ir.Module.parse(program, context)
        except ir.MLIRError as error:
            raise ValueError(str(error)) from None


def print_without_locations(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=False))
