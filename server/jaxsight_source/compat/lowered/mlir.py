"""MLIR as jaxlib ships it, and its compiler. Applies to JAX 0.8 to 0.12.

Private API used: `jaxlib.mlir` (its `ir` and the StableHLO dialect: JAX has no public reader of
StableHLO; its `passmanager`, for StableHLO's passes), `make_ir_context`, which registers the
dialects that JAX's programs use, and `backend_compile_and_load` with `get_compile_options`, which
compile a module without a function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import jax
from jax._src import compiler
from jax._src.interpreters.mlir import make_ir_context
from jaxlib import xla_client
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo as dialect

from jaxsight_source.compat.lowered.written_out import require_few

__all__ = [
    "dialect",
    "functions",
    "ir",
    "is_token",
    "parse",
    "print_without_locations",
    "run",
    "transfer_configuration",
]

_ARTIFACT = b"ML\xefR"
"""How MLIR bytecode begins (https://mlir.llvm.org/docs/BytecodeFormat)."""


_QUANTIZED = "!quant."
_OF_KNOWN_SHAPES = re.compile(
    r"\b(?:dynamic_(?:reshape|iota|broadcast_in_dim|pad|gather|conv)|real_dynamic_slice)"
)

_FEW = 16
"""Numbers of a constant that are printed where only types are looked at: none are needed."""

_WITHOUT_QUANTIZED = "func.func(stablehlo-legalize-quant-to-math,chlo-legalize-to-stablehlo)"


def parse(program: str | bytes) -> ir.Module:
    """Return the module of a text, of bytecode, or of a portable artifact.

    Quantized elements are the integers that store them, as StableHLO's pass computes with them, and
    operations whose shapes are constants have these shapes.

    Raises:
        ValueError: if it is none of these, with MLIR's message, or too large when written out.
    """
    context = make_ir_context()
    if isinstance(program, str) and _QUANTIZED in program:
        with context:
            # The pass knows the dialect `quant`, which a new context does not.
            _pass("vhlo-legalize-to-stablehlo", ir.Module.parse("module {}", context))
    module = _parsed(program, context)
    require_few(module, program)
    with context:
        text = program
        if isinstance(text, bytes):  # bytecode has numbers for types
            text = str(module.operation.get_asm(large_elements_limit=_FEW))
        if _QUANTIZED in text:
            _pass(_WITHOUT_QUANTIZED, module)
        if _OF_KNOWN_SHAPES.search(text) and _has_static_inputs(module):
            _refine(module)
    return module


def _pass(pipeline: str, module: ir.Module) -> None:
    """Change a module by passes.

    Raises:
        ValueError: if a pass fails, such as at an operation of quantized elements.
    """
    dialect.register_stablehlo_passes()
    try:
        passes = passmanager.PassManager.parse(f"builtin.module({pipeline})", module.context)
        passes.run(module.operation)
    except ir.MLIRError as error:
        raise ValueError(str(error)) from None


def _has_static_inputs(module: ir.Module) -> bool:
    main = functions(module).get("main")
    if main is None:
        return False
    return not any("?" in str(one.type) for one in main.regions[0].blocks[0].arguments)


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


def print_without_locations(module: ir.Module) -> str:
    return str(module.operation.get_asm(enable_debug_info=False))


def _refine(module: ir.Module) -> None:
    """Replace dynamic dimensions by the sizes that follow from the types of @main's arguments.

    Raises:
        ir.MLIRError: they contradict each other.
    """
    dialect.register_stablehlo_passes()
    passes = "stablehlo-refine-shapes,func.func(stablehlo-canonicalize-dynamism)"
    passmanager.PassManager.parse(f"builtin.module({passes})", module.context).run(module.operation)


def is_token(value: ir.Value) -> bool:
    """Return whether a value only orders effects."""
    return bool(dialect.TokenType.isinstance(value.type))


def transfer_configuration(operation: ir.Operation) -> dict[str, str]:
    """Return the attributes of a transfer between the host and devices, as texts."""
    return dict(sorted(_configuration(operation)))


def _configuration(operation: ir.Operation) -> Iterator[tuple[str, str]]:
    for each in operation.attributes:
        name = each if isinstance(each, str) else each.name  # names since jaxlib 0.9
        value = operation.attributes[name]
        is_text = isinstance(value, ir.StringAttr)
        yield name.removeprefix("mhlo."), str(value.value if is_text else value)


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
