"""Lines of a StableHLO text, and the equations that were read from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

import jax

from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.locations import named_scopes
from jaxsight_source.compat.lowered import mlir
from jaxsight_source.compat.lowered.mlir import ir

_OWN = re.compile(r'"-":(\d+):')
"""The place of an operation in the text, which MLIR calls `-`."""

_SCOPE = re.compile(r"lines((?: \d+)+)")

Lines = Mapping[ir.Operation, int]
"""The line of the text, from 0, that each operation begins on."""


def lines_of(module: ir.Module, text: str) -> Lines:
    """Return where the operations of a text's module are in it; nothing where they were changed.

    MLIR knows the lines of operations without a place of their own: another module is parsed, of
    the text without such places.
    """
    plain = "\n".join(line for line, _ in mlir.places_of(text)[0])
    other = mlir.parse(plain)
    ours, theirs = [*_operations(module)], [*_operations(other)]
    if [one.name for one in ours] != [one.name for one in theirs]:
        return {}
    return {
        operation: int(own[1]) - 1
        for operation, counterpart in zip(ours, theirs, strict=True)
        if (own := _OWN.search(str(counterpart.location)))
    }


def _operations(module: ir.Module) -> Iterator[ir.Operation]:
    waiting = [module.operation]
    while waiting:
        operation = waiting.pop()
        yield operation
        for region in operation.regions:
            for block in region.blocks:
                waiting += [each.operation for each in block.operations]


def scope(lines: Iterable[int]) -> AbstractContextManager[None]:
    """Return a context in which equations are of some lines."""
    return jax.named_scope("lines " + " ".join(map(str, sorted(lines))))


def read_from(equation: Equation) -> list[int]:
    """Return the lines that an equation was read from, if that was recorded."""
    for name in reversed(named_scopes(equation)):
        if found := _SCOPE.fullmatch(name):
            return [int(line) for line in found[1].split()]
    return []
