"""MLIR as jaxlib ships it, and its compiler. Applies to JAX 0.8 to 0.12.

Private API used: `jaxlib.mlir` (its `ir` and the StableHLO dialect: JAX has no public reader of
StableHLO), `make_ir_context`, which registers the dialects that JAX's programs use, and
`backend_compile_and_load` with `get_compile_options`, which compile a module without a function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax._src import compiler
from jax._src.interpreters.mlir import make_ir_context
from jaxlib import xla_client
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo as dialect

__all__ = [
    "attributes_of", "dialect", "functions", "ir", "is_token", "parse", "places_of",
    "print_without_locations",
    "run",
]  # fmt: skip

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


_PLACE = re.compile(r"(?P<name>#loc\d*) = loc\((?P<place>.*)\)")
_PLACED = re.compile(r" ?loc\((?P<place>(?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*)\)")
"""How MLIR writes the place that an operation comes from, which may be an alias's."""


def places_of(text: str) -> tuple[list[tuple[str, str]], Mapping[str, str]]:
    """Return the lines of a text without places, and apart from them the places of operations.

    Returns:
        Each line with the place at its end, which is that of its operation: those before it are of
        arguments. The lines of aliases are empty. Then the place that each alias stands for.
    """
    aliases: dict[str, str] = {}
    lines: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if alias := _PLACE.fullmatch(line.rstrip("\r")):
            aliases[alias["name"]] = alias["place"]
            lines.append(("", ""))
            continue
        *_, last = ["", *(use["place"] for use in _PLACED.finditer(line))]
        lines.append((_PLACED.sub("", line), last))
    return lines, aliases


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


MOST = 10_000_000
"""Operations or names of a program with all calls and names written out, a choice: ten times those
of a model with a hundred layers. XLA inlines calls, too."""


_ALIAS = re.compile(r"^\s*([#!][\w$.-]+)\s*=", re.MULTILINE)
_USED = re.compile(r"[#!][\w$.-]+")

_CALLEES = ("callee", "decomposition")
"""The attributes that name a function which an operation calls."""


def require_few(module: ir.Module, program: str | bytes) -> None:
    """Make sure that a module is not large when it is written out.

    Args:
        module: the module.
        program: its text, whose names of attributes, types and locations count, too, or bytecode.

    Raises:
        ValueError: it is, or is nested too deeply.
    """
    try:
        most = _largest(_functions(module))
        if isinstance(program, str):
            most = max(most, _largest(_aliases(program)))
    except RecursionError:
        raise ValueError("its attributes or calls are nested too deeply") from None
    if most > MOST:
        raise ValueError(f"written out, it has more than {MOST:,} operations and attributes")


def _largest(uses: Mapping[str, Sequence[str]]) -> int:
    """Return the most that one name stands for: what it uses, with what that stands for."""
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1  # one that uses itself is refused by whoever reads it
            sizes[name] += sum(map(size, uses.get(name, ())))
        return sizes[name]

    return max(map(size, uses), default=0)


def _aliases(text: str) -> dict[str, list[str]]:
    """Return the names that each alias of a text uses."""
    _, *parts = _ALIAS.split(text)
    return {
        name: _USED.findall(body.partition("\n")[0])
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def _functions(module: ir.Module) -> dict[str, list[str]]:
    """Return the operations in each function, those that call another one by its name."""
    functions: dict[str, list[str]] = {}
    for function in module.body.operations:
        if "sym_name" not in function.operation.attributes:
            continue
        inside: list[str] = []

        def add(operation: ir.Operation, inside: list[str] = inside) -> ir.WalkResult:
            attributes = operation.attributes
            named = [attributes[name] for name in _CALLEES if name in attributes]
            inside.append(ir.FlatSymbolRefAttr(named[0]).value if named else "")
            return ir.WalkResult.ADVANCE

        function.operation.walk(add)
        functions[ir.StringAttr(function.operation.attributes["sym_name"]).value] = inside
    return functions
