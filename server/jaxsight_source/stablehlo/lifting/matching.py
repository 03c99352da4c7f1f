"""Whether operations around one are those that a function is lowered to."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import jax

from jaxsight_source.compat.equations import called
from jaxsight_source.compat.lowered import mlir
from jaxsight_source.compat.lowered.mlir import ir
from jaxsight_source.compat.staging import evaluate, opened, trace_settings
from jaxsight_source.readable import inlined
from jaxsight_source.stablehlo.attributes import constant_text
from jaxsight_source.stablehlo.canonical import PrintedFunctions, captured, order_of_loop, permuted
from jaxsight_source.stablehlo.operations.regions import is_constant, owner_of

Array: TypeAlias = Any
"""A value while JAX traces: an array of JAX or NumPy."""

_CALLS = {"jit", "pjit", "closed_call"}
"""Primitives that call their jaxpr: a candidate is lowered without them."""


@functools.lru_cache(maxsize=512, typed=True)
def with_options(
    function: Callable[..., object], *args: object, **options: object
) -> Callable[..., object]:
    """Return a function with options, the same for the same options, so that patterns are kept."""
    return functools.partial(function, *args, **options)


@dataclass(frozen=True, slots=True)
class LoweredCandidate:
    """A function that may have been lowered to some operations."""

    function: Callable[..., object]
    inputs: tuple[jax.ShapeDtypeStruct, ...]
    calls: bool = False
    """Whether it calls functions of its own, and is evaluated so; else these are inlined."""


@dataclass(frozen=True, slots=True)
class LiftedCall:
    """Operations that are one call."""

    function: Callable[..., Sequence[jax.Array]]
    inputs: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    matched: frozenset[ir.Value]
    """The results of all operations that the call is lowered to."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What a candidate is lowered to."""

    function: Callable[..., Sequence[jax.Array]]
    printed: PrintedFunctions
    block: ir.Block
    module: ir.Module


def lift(
    anchor: ir.Operation,
    printed: PrintedFunctions,
    candidates: Sequence[LoweredCandidate],
    *,
    wide: bool,
) -> LiftedCall | None:
    """Return the call that was lowered to an operation and those around it.

    Args:
        anchor: the operation.
        printed: the functions of its module.
        candidates: the functions to try, the first that matches is returned.
        wide: whether they are lowered with 64-bit types, which changes counters.
    """
    for one in candidates:
        with jax.enable_x64(wide):
            pattern = _pattern(one.function, one.inputs, one.calls, trace_settings())
        if pattern is None:
            continue
        for operation in pattern.block.operations:
            if _is_alike(operation.operation, pattern.printed, anchor, printed):
                found = _Match(pattern, printed).found(operation.operation, anchor)
                if found is not None:
                    return found
    return None


def _is_alike(
    one: ir.Operation, mine: PrintedFunctions, other: ir.Operation, theirs: PrintedFunctions
) -> bool:
    return one.name == other.name and mine.signature(one) == theirs.signature(other)


@functools.lru_cache(maxsize=512)
def _pattern(
    function: Callable[..., object],
    inputs: tuple[jax.ShapeDtypeStruct, ...],
    calls: bool,
    settings: Hashable,
) -> _Pattern | None:
    """Return what a function is lowered to; None if these types do not allow it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as about 64-bit types
            jaxpr: object = jax.make_jaxpr(function)(*inputs)
            if not calls:
                jaxpr = inlined(jaxpr, lambda e: called(e) if e.primitive.name in _CALLS else None)
            program = opened(jaxpr)

            def evaluated(*arguments: jax.Array) -> Sequence[jax.Array]:
                return evaluate(program, *arguments)

            text = jax.jit(evaluated, keep_unused=True).lower(*inputs).as_text()
    except Exception:  # noqa: BLE001 - a guess, whose error may be any
        return None
    module = mlir.parse(text)
    functions = mlir.functions(module)
    main = functions["main"].regions[0].blocks[0]
    return _Pattern(evaluated, PrintedFunctions(functions), main, module)


@dataclass(slots=True)
class _Match:
    """The values of a program that stand for those of a pattern."""

    pattern: _Pattern
    printed: PrintedFunctions
    bound: dict[ir.Value, ir.Value] = field(default_factory=dict)

    def found(self, mine: ir.Operation, anchor: ir.Operation) -> LiftedCall | None:
        if not self._same(mine, anchor):
            return None
        block = self.pattern.block
        *operations, end = [each.operation for each in block.operations]
        ends = end.operands
        for operation in _needed(operations, ends):
            if operation.name != "stablehlo.constant" and not self._forward(operation):
                return None
        if not all(value in self.bound for value in (*block.arguments, *ends)):
            return None
        matched = [self.bound[value] for value in self.bound if owner_of(value) is not None]
        found = LiftedCall(
            self.pattern.function,
            tuple(self.bound[argument] for argument in block.arguments),
            tuple(self.bound[value] for value in ends),
            frozenset(matched),
        )
        return found if _is_closed(found) else None

    def _forward(self, mine: ir.Operation) -> bool:
        """Find the operation that stands for one of the pattern, among the users of its operands.

        Return False if there is none. An operation of constants alone is found from its users.
        """
        if all(result in self.bound for result in mine.results):
            return True
        known = [self.bound[value] for value in _inputs(mine) if value in self.bound]
        if not known:
            return True
        taken = set(self.bound.values())
        users = min(([*value.uses] for value in known), key=len)
        for use in reversed(users):  # MLIR lists the last first
            if taken.intersection(use.owner.operation.results):
                continue
            before = dict(self.bound)
            if self._same(mine, use.owner.operation):
                return True
            self.bound = before
        return False

    def _same(self, mine: ir.Operation, other: ir.Operation) -> bool:
        """Bind the values of two operations; return False if they differ."""
        if not _is_alike(mine, self.pattern.printed, other, self.printed):
            return False
        ours, theirs = [*_inputs(mine)], [*_inputs(other)]
        if len(ours) != len(theirs) or len(mine.results) != len(other.results):
            return False
        if not all(self._stands_for(one, two) for one, two in zip(ours, theirs, strict=True)):
            return False
        self.bound.update(zip(_results(mine), _results(other), strict=True))
        return True

    def _stands_for(self, mine: ir.Value, other: ir.Value) -> bool:
        if mine in self.bound:
            return self.bound[mine] == other
        if mine.type != other.type and str(mine.type) != str(other.type):
            return False
        ours, theirs = owner_of(mine), owner_of(other)
        if ours is None:
            self.bound[mine] = other
            return True
        if theirs is None:
            return False
        if ours.name == "stablehlo.constant":
            return theirs.name == ours.name and constant_text(ours) == constant_text(theirs)
        places = _results(ours).index(mine), _results(theirs).index(other)
        return places[0] == places[1] and self._same(ours, theirs)


def _needed(operations: Sequence[ir.Operation], ends: Sequence[ir.Value]) -> list[ir.Operation]:
    """Return the operations that values need: a pattern has no others once JAX lowers it again."""
    needed: list[ir.Operation] = []
    values = {*ends}
    for operation in reversed(operations):
        if not operation.results or values.intersection(operation.results):
            needed.insert(0, operation)
            values.update(_inputs(operation))
    return needed


def _inputs(operation: ir.Operation) -> Iterator[ir.Value]:
    yield from permuted(operation.operands, order_of_loop(operation))
    yield from (value for value in captured(operation) if not is_constant(value))


def _results(operation: ir.Operation) -> list[ir.Value]:
    return permuted(operation.results, order_of_loop(operation))


def _is_closed(found: LiftedCall) -> bool:
    """Return whether values between inputs and results are used inside only.

    Those that depend on no input may be used elsewhere: they are computed again.
    """
    results = set(found.results)
    dependent = _dependent(found)
    return all(
        all(set(use.owner.operation.results) & found.matched for use in value.uses)
        for value in dependent
        if value not in results
    )


def _dependent(found: LiftedCall) -> set[ir.Value]:
    known = set(found.inputs)
    dependent: set[ir.Value] = set()

    def depends(value: ir.Value) -> bool:
        if value in known or value in dependent:
            return True
        owner = owner_of(value)
        if value not in found.matched or owner is None:
            return False
        if sum(depends(operand) for operand in _inputs(owner)):
            dependent.update(owner.results)
            return True
        return False

    for value in found.matched:
        depends(value)
    return dependent


def absorbed(found: LiftedCall) -> Mapping[ir.Value, None]:
    """Return the values that need not be computed: those that only the call used."""
    needless = dict.fromkeys(_dependent(found))
    changed = True
    while changed:
        changed = False
        for value in found.matched:
            if value not in needless and all(
                set(use.owner.operation.results) & needless.keys() for use in value.uses
            ):
                needless[value] = None
                changed = True
    return {value: None for value in needless if value not in found.results}
