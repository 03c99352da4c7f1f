"""Modules whose text is small, and whose program is not. Applies to JAX 0.8 to 0.12.

An attribute, a type or a location may refer to another one ten times, and a function may call the
next one twice: written out, as we and MLIR do, some dozens of these fill the memory.

Private API used: `jaxlib.mlir`, for the same reason as `compat.mlir`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from jaxlib.mlir import ir

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
