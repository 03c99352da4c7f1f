"""Modules whose text is small, and whose program is not. Applies to JAX 0.8 to 0.12.

An attribute, a type or a location may refer to another one ten times, and a function may call the
next one twice: written out, as we and MLIR do, some dozens of these fill the memory.

Private API used: `jaxlib.mlir`, for the same reason as `compat.mlir`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

MOST = 10_000_000
"""Operations and attributes of a program with all calls written out, a choice: ten times those of a
model with a hundred layers. XLA inlines calls, too."""


_ALIAS = re.compile(r"^\s*([#!][\w$.-]+)\s*=", re.MULTILINE)
_USED = re.compile(r"[#!][\w$.-]+")


def require_few(module: ir.Module, program: str | bytes) -> None:
    """Make sure that a module is not large when it is written out.

    Args:
        module: the module.
        program: its text, whose names of types and locations count, too, or bytecode.

    Raises:
        ValueError: it is, or is nested too deeply.
    """
    with module.context:
        try:
            most = _Sizes(module).most()
            if isinstance(program, str):
                most = max(most, _most_of_aliases(program))
        except RecursionError:
            raise ValueError("its attributes or calls are nested too deeply") from None
    if most > MOST:
        raise ValueError(f"written out, it has more than {MOST:,} operations and attributes")


def _most_of_aliases(text: str) -> int:
    """Return how many names the largest alias of a text stands for."""
    _, *parts = _ALIAS.split(text)
    used = {
        name: _USED.findall(body.partition("\n")[0])
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = 1
            sizes[name] += sum(map(size, used.get(name, ())))
        return sizes[name]

    return max(map(size, used), default=0)


class _Sizes:
    """Numbers of operations and attributes; each function and each attribute is counted once."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module.operation
        self._functions: dict[str, ir.Operation] = {}
        for each in module.body.operations:
            if "sym_name" in each.operation.attributes:
                name = ir.StringAttr(each.operation.attributes["sym_name"]).value
                self._functions[name] = each.operation
        self._of: dict[Any, int] = {}

    def most(self) -> int:
        own = sum(map(self._attribute, _values(self._module)))
        return max([own, *map(self._function, self._functions)])

    def _function(self, name: str) -> int:
        if name not in self._of:
            self._of[name] = 0  # one that calls itself is refused by whoever reads it
            self._of[name] = self._operation(self._functions[name])
        return self._of[name]

    def _operation(self, operation: ir.Operation) -> int:
        inside = (
            self._operation(each.operation)
            for region in operation.regions
            for block in region.blocks
            for each in block.operations
        )
        return 1 + sum(map(self._attribute, _values(operation))) + sum(inside)

    def _attribute(self, attribute: Any) -> int:
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            return self._function(attribute.value) if attribute.value in self._functions else 1
        if not isinstance(attribute, ir.ArrayAttr | ir.DictAttr):
            return 1
        if attribute not in self._of:
            parts = attribute if isinstance(attribute, ir.ArrayAttr) else _in(attribute)
            self._of[attribute] = 1 + sum(map(self._attribute, parts))
        return self._of[attribute]


def _values(operation: ir.Operation) -> Iterator[Any]:
    found = operation.attributes
    for each in found:
        with contextlib.suppress(TypeError):  # of complex numbers, for which jaxlib has no class
            yield found[each if isinstance(each, str) else each.name]


def _in(attribute: Any) -> list[Any]:
    return [attribute[position].attr for position in range(len(attribute))]
