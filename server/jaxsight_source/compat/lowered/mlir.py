"""MLIR as jaxlib ships it, and its compiler. Applies to JAX 0.8 to 0.12.

Private API used: `jaxlib.mlir` (its `ir` and the StableHLO dialect: JAX has no public reader of
StableHLO), `make_ir_context`, which registers the dialects that JAX's programs use, and
`backend_compile_and_load` with `get_compile_options`, which compile a module without a function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax._src import compiler
from jax._src.interpreters.mlir import make_ir_context
from jaxlib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as dialect

from jaxsight_source.compat.lowered.written_out import require_few

__all__ = [
    "attributes_of",
    "dialect",
    "functions",
    "ir",
    "is_token",
    "parse",
    "print_without_locations",
    "run",
]

_ARTIFACT = b"ML\xefR"
"""How MLIR bytecode begins (https://mlir.llvm.org/docs/BytecodeFormat)."""


def parse(program: str | bytes) -> ir.Module:
    """Return the module of a text, of bytecode, or of a portable artifact.

    Raises:
        ValueError: if it is none of these, with MLIR's message, or too large when written out.
    """
    context = make_ir_context()
    module = _parsed(program, context)
    require_few(module, program)
    return module


def _parsed(program: str | bytes, context: ir.Context) -> ir.Module:
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


def functions(module: ir.Module) -> dict[str, ir.Operation]:
    """Return the functions of a module by name."""
    operations = [each.operation for each in module.body.operations]
    return {
        str(ir.StringAttr(operation.attributes["sym_name"]).value): operation
        for operation in operations
        if operation.name == "func.func"
    }


def attributes_of(operation: ir.Operation) -> dict[str, ir.Attribute]:
    """Return the attributes of an operation by name."""
    named = (operation.attributes[place] for place in range(len(operation.attributes)))
    return {each.name: each.attr for each in named}


def print_without_locations(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=False))


def is_token(value: ir.Value) -> bool:
    """Return whether a value only orders effects."""
    return bool(dialect.TokenType.isinstance(value.type))


def run(program: str | bytes, leaves: Sequence[jax.Array]) -> list[jax.Array]:
    """Compile a module for the first device, and return its results for arrays."""
    module = parse(program)
    device = jax.devices()[0]
    load: Any = compiler.backend_compile_and_load
    with module.context:
        if "sym_name" not in module.operation.attributes:  # which JAX reads
            module.operation.attributes["sym_name"] = ir.StringAttr.get("main")
        options = compiler.get_compile_options(1, 1, backend=device.client)
        listed = xla_client.DeviceList((device,))
        executable = load(device.client, module, listed, options, [])
    results = executable.execute_sharded(list(leaves)).disassemble_into_single_device_arrays()
    return [one for (one,) in results]
