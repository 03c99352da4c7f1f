"""Evaluates operations of a module with functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax
import numpy as np

from jaxsight_source.compat.lowered.mlir import ir, is_token
from jaxsight_source.compat.staging import with_parameters
from jaxsight_source.stablehlo import attributes
from jaxsight_source.stablehlo.canonical import PrintedFunctions
from jaxsight_source.stablehlo.lifting.candidates import candidates, library_calls
from jaxsight_source.stablehlo.lifting.matching import LiftedCall, LoweredCandidate, absorbed, lift
from jaxsight_source.stablehlo.operations.regions import is_implied, unbroadcast
from jaxsight_source.stablehlo.places import Lines, scope
from jaxsight_source.stablehlo.program import OpaqueCall, UnreadableProgram, plain_names

Array: TypeAlias = Any
"""A value while JAX traces: an array of JAX or NumPy; None in place of a token or an absorbed
operand."""
Results: TypeAlias = Array | Sequence[Array] | None
Reader: TypeAlias = "Callable[[OperationStep], Results]"
Values: TypeAlias = "Mapping[ir.Value, Array]"

Mesh: TypeAlias = "Mapping[str, int]"
"""The axes of a mesh with their sizes."""

READERS: dict[str, Reader] = {}
"""What evaluates an operation, by its name."""

ABSORBED: list[Callable[[ir.Operation], bool]] = []
"""What tells whether an operation is evaluated as part of the only operation that uses it."""

_TERMINATORS = {"stablehlo.return", "func.return", "sdy.return"}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Declare what evaluates the operations of some names."""

    def declare(reader: Reader) -> Reader:
        READERS.update(dict.fromkeys(names, reader))
        return reader

    return declare


@dataclass(frozen=True, slots=True)
class OperationStep:
    """An operation that is being evaluated, with the values of its operands."""

    operation: ir.Operation
    operands: tuple[Array, ...]
    values: Values
    evaluation: Evaluation

    @property
    def operand(self) -> Array:
        return self.operands[0]

    def has(self, name: str) -> bool:
        return name in self.operation.attributes

    def attribute(self, name: str) -> ir.Attribute:
        if not self.has(name):
            raise UnreadableProgram(f"expected the attribute {name}")
        return self.operation.attributes[name]

    def integers(self, name: str) -> tuple[int, ...]:
        """Return the integers of an attribute; none if it is missing."""
        return attributes.integers(self.operation.attributes[name]) if self.has(name) else ()

    def integer(self, name: str) -> int:
        return attributes.integer(self.attribute(name))

    def flag(self, name: str) -> bool:
        return self.has(name) and str(self.operation.attributes[name]) == "true"

    def word(self, name: str) -> str:
        return attributes.word(self.attribute(name)) if self.has(name) else ""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.structs[0].shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the first result."""
        return np.dtype(self.structs[0].dtype)

    @property
    def structs(self) -> list[jax.ShapeDtypeStruct]:
        """The types of the results that are arrays."""
        arrays = (result for result in self.operation.results if not is_token(result))
        return [attributes.struct(array.type) for array in arrays]

    def with_tokens(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the results of the operation, of which these are arrays."""
        found = iter(arrays)
        return [None if is_token(each) else next(found) for each in self.operation.results]

    def block(self, position: int) -> ir.Block:
        return self.operation.regions[position].blocks[0]

    def region(self, position: int) -> Callable[..., tuple[Array, ...]]:
        """Return a function of the region's arguments; it reads values from around the region."""
        block = self.block(position)

        def run(*arguments: Array) -> tuple[Array, ...]:
            return self.evaluation.block(block, arguments, self.values)

        return with_parameters(run, plain_names(len(block.arguments)))


@dataclass(slots=True)
class Evaluation:
    """The functions of a module, evaluated as they are called."""

    functions: Mapping[str, ir.Operation]
    meshes: Mapping[str, Mesh]
    printed: PrintedFunctions
    wide: bool
    """Whether the result is lowered with 64-bit types."""
    readable: bool
    """Whether to find calls of library functions, and leave broadcasts to JAX."""
    loops: Callable[[ir.Operation, Evaluation], Iterator[LoweredCandidate]]
    """Yields the scans that a loop may be."""
    lines: Lines = field(default_factory=dict)
    """Lines to record in equations."""
    inlined: AbstractSet[str] = frozenset()
    """The functions that are evaluated where they are called."""
    mesh: Mesh = field(default_factory=dict)
    """The mesh of the `shard_map` that is evaluated."""
    opaque: list[OpaqueCall] = field(default_factory=list)
    _jitted: dict[str, Callable[..., tuple[Array, ...]]] = field(default_factory=dict)

    def function(self, name: str) -> Callable[..., tuple[Array, ...]]:
        """Return a function of the module."""
        found = self.functions.get(name)
        if found is None or not found.regions[0].blocks:
            raise UnreadableProgram(f"the module has no function @{name} with a body", "func.call")
        block = found.regions[0].blocks[0]

        def run(*arguments: Array) -> tuple[Array, ...]:
            return self.block(block, arguments, {})

        run.__name__ = run.__qualname__ = name
        return with_parameters(run, plain_names(len(block.arguments)))

    def jitted(self, name: str) -> Callable[..., tuple[Array, ...]]:
        """Return a function of the module as a jitted function of its name."""
        if name not in self._jitted:
            self._jitted[name] = jax.jit(self.function(name))
        return self._jitted[name]

    def block(
        self, block: ir.Block, arguments: Sequence[Array], around: Values
    ) -> tuple[Array, ...]:
        """Evaluate a block's operations; return what it returns."""
        values = self.values(block, arguments, around)
        end = [*block.operations][-1].operation
        return tuple(values[operand] for operand in end.operands)

    def values(self, block: ir.Block, arguments: Sequence[Array], around: Values) -> Values:
        """Evaluate a block's operations but those whose results are known; return all values."""
        values = {**around, **dict(zip(block.arguments, arguments, strict=True))}
        lifts = self._lifts(block)
        for found in lifts.values():
            values.update(dict.fromkeys(absorbed(found)))
        for each in block.operations:
            operation = each.operation
            if operation.name in _TERMINATORS:
                return values
            if operation.results and operation.results[0] in lifts:
                call = lifts[operation.results[0]]
                with self._of_lines(operation, *(value.owner for value in call.matched)):
                    called = call.function(*(values[value] for value in call.inputs))
                values.update(zip(call.results, called, strict=True))
            if operation.results and all(result in values for result in operation.results):
                continue
            if any(is_absorbed(operation) for is_absorbed in ABSORBED):
                continue  # the operation that uses it evaluates it
            if self.readable and is_implied(operation):
                continue
            read = unbroadcast(operation) if self.readable else operation.operands
            operands = tuple(values.get(operand) for operand in read)
            results = self.evaluated(OperationStep(operation, operands, values, self))
            values.update(zip(operation.results, results, strict=True))
        raise UnreadableProgram("expected a block to end with a return")

    @contextmanager
    def inlining(self, names: AbstractSet[str]) -> Iterator[None]:
        """Inline calls of functions."""
        outside, self.inlined = self.inlined, names
        try:
            yield
        finally:
            self.inlined = outside

    def _lifts(self, block: ir.Block) -> dict[ir.Value, LiftedCall]:
        """Return calls that operations of a block were lowered from, by their anchors' results."""
        lifts: dict[ir.Value, LiftedCall] = {}
        taken: set[ir.Value] = set()
        later = {result for each in block.operations for result in each.operation.results}
        for each in block.operations:
            anchor = each.operation
            if anchor.results and anchor.results[0] not in taken:
                guesses = candidates(anchor, self.functions)
                if self.readable:
                    guesses = [*library_calls(anchor, self.functions), *guesses]
                if anchor.name == "stablehlo.while" and not any(map(is_token, anchor.operands)):
                    guesses += self.loops(anchor, self)
                found = lift(anchor, self.printed, guesses, wide=self.wide)
                if found is not None and not later.intersection(found.inputs):
                    lifts[anchor.results[0]] = found
                    taken |= found.matched
            later.difference_update(anchor.results)
        return lifts

    def _of_lines(self, *operations: ir.Operation | ir.Block) -> AbstractContextManager[None]:
        """Return a context in which equations are of the lines of some operations."""
        lines = {self.lines[one] for one in operations if one in self.lines}
        return scope(lines) if lines else nullcontext()

    def evaluated(self, step: OperationStep) -> Sequence[Array]:
        name = step.operation.name
        reader = READERS.get(name)
        if reader is None:
            raise UnreadableProgram("JAX has no such operation", name, _place(step.operation))
        try:
            with self._of_lines(step.operation):
                results = reader(step)
        except UnreadableProgram as error:
            if error.operation:
                raise
            raise UnreadableProgram(error.why, name, _place(step.operation)) from None
        except (TypeError, ValueError, NotImplementedError) as error:
            why = " ".join(str(error).split())
            raise UnreadableProgram(why, name, _place(step.operation)) from error
        if results is None:
            return ()
        return [*results] if isinstance(results, Sequence) else [results]


def _place(operation: ir.Operation) -> str:
    place = str(operation.location).removeprefix("loc(").removesuffix(")")
    return "" if place == "unknown" else place
