"""Follow values from the kernels that write them to their readers, through tuples and loops.

A value is represented by its sources, a tuple of them for each array in it.
A loop's carry is a source of its own, which stands for the initial value and the body's result; it
is resolved after all values have been followed.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from jaxsight.compiler.hlo.walk import ComputationRun, Walk
from jaxsight.hlo.shapes import HOST_MARK, arrays, parts
from jaxsight.hlo.text import Instruction
from jaxsight.wire.kernel_graph import (
    KERNEL,
    OUTPUT,
    PARAMETER,
    Edge,
    End,
    EndKind,
    Temporary,
    Value,
)

_CARRIED: Final = "carried"


class ReadFrom(NamedTuple):
    """Result `leaf` of kernel `number`, parameter `leaf`, or element `leaf` of a loop's carry.

    A tuple, as sources are hashed for each read.
    """

    what: EndKind | Literal["carried"]
    number: int
    """The kernel, or the loop."""
    leaf: int
    via_host: bool = False
    """Whether the value has been in the memory of the host since."""


Leaves = list[tuple[ReadFrom, ...]]
"""The sources of each array of a value."""


@dataclass(slots=True, eq=False)
class ArrayReads:
    """All reads of values."""

    reads: list[tuple[ReadFrom, int, Value]] = field(default_factory=list)
    """(source, the kernel that reads it, the value), with resolved sources."""
    outputs: list[tuple[ReadFrom, int, Value]] = field(default_factory=list)
    """(source, index of the output, the value)."""
    inputs: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    """The operands of each kernel, without duplicates."""
    feeds_loop: dict[int, set[int]] = field(default_factory=dict)
    """The loops that carry a kernel's results, by kernel."""
    chooses: set[int] = field(default_factory=set)
    """The kernels whose result selects the arm of a conditional."""

    def edges(self) -> tuple[Edge, ...]:
        """Return all edges, without duplicates."""
        edges: dict[tuple[ReadFrom, EndKind, int], Edge] = {}
        kinds: tuple[EndKind, EndKind] = (KERNEL, OUTPUT)
        for what, reads in zip(kinds, (self.reads, self.outputs), strict=True):
            for read, index, value in reads:
                source = read._replace(via_host=False) if read.via_host else read
                if source.what != _CARRIED and (source, what, index) not in edges:
                    number = source.leaf if source.what == PARAMETER else source.number
                    edge = Edge(End(source.what, number), End(what, index), value)
                    edges[source, what, index] = edge
        return tuple(edges.values())

    def temporaries(self, equations: Iterable[str]) -> tuple[Temporary, ...]:
        """Return the values that kernels write for kernels, except outputs."""
        names = list(equations)
        out = {source for source, _, _ in self.outputs}
        readers: dict[ReadFrom, tuple[Value, list[int]]] = {}
        for source, kernel, value in self.reads:
            if source.what == KERNEL and not source.via_host and source not in out:
                readers.setdefault(source, (value, []))[1].append(kernel)
        return tuple(
            Temporary(value, source.number, tuple(dict.fromkeys(kernels)), names[source.number])
            for source, (value, kernels) in readers.items()
        )


def follow(walk: Walk) -> ArrayReads:
    """Return the flow of all values of a walk."""
    return _Following(walk).run()


_Steps = Generator["_Steps", Leaves | None, Leaves]
"""Follows a run of a computation: it yields the runs within it, and is sent their results."""


class _Following:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.offloads = bool(walk.moving)
        self.carried: dict[ReadFrom, tuple[ReadFrom, ...]] = {}
        self.reads: list[tuple[tuple[ReadFrom, ...], int, Value]] = []
        self.predicates: list[tuple[ReadFrom, ...]] = []
        self.flow = ArrayReads()
        self._resolved: dict[ReadFrom, tuple[ReadFrom, ...]] = {}

    def run(self) -> ArrayReads:
        top = self.walk.top
        if top is None:
            return self.flow
        leaf = itertools.count()
        arguments: list[Leaves] = [
            [(ReadFrom(PARAMETER, 0, next(leaf)),) for _ in arrays(parameter.shape)]
            for parameter in top.computation.parameters()
        ]
        # Generators on a stack, as loops may be nested deeper than Python's recursion limit.
        stack, results = [self._followed(top, arguments)], None
        while stack:
            try:
                stack.append(stack[-1].send(results))
                results = None
            except StopIteration as end:
                stack.pop()
                results = end.value
        for sources, kernel, value in self.reads:
            self.flow.reads += [(source, kernel, value) for source in self._resolve(sources)]
        root = top.computation.root
        values = arrays(root.shape) if root is not None else ()
        for index, (value, sources) in enumerate(zip(values, results or (), strict=False)):
            self.flow.outputs += [(source, index, value) for source in self._resolve(sources)]
        for sources in self.predicates:
            self.flow.chooses |= self._kernels(sources)
        for loop, sources in self.carried.items():
            for kernel in self._kernels(sources):
                self.flow.feeds_loop.setdefault(kernel, set()).add(loop.number)
        return self.flow

    def _followed(self, call: ComputationRun, arguments: list[Leaves]) -> _Steps:
        """Follow a run with its arguments, and return the results."""
        values: dict[str, Leaves] = {}
        for instruction in call.computation.instructions:
            runs = call.calls.get(instruction.name)
            if not runs:
                values[instruction.name] = self._value(call, arguments, values, instruction)
                continue
            operands = [values.get(name, []) for name in instruction.operands]
            initial = operands[0] if operands else []
            given, marks = [operands] * len(runs), list[ReadFrom]()
            if instruction.opcode == "while":
                loop = call.loops[instruction.name]
                marks = [ReadFrom(_CARRIED, loop, leaf) for leaf in range(len(initial))]
                for mark, sources in zip(marks, initial, strict=True):
                    self.carried.setdefault(mark, sources)
                given = [[[(mark,) for mark in marks]]] * len(runs)
            elif instruction.opcode == "conditional":
                given = [operands[at : at + 1] for at in range(1, len(runs) + 1)]
                self.predicates += initial[:1]
            results = []
            for inner, parameters in zip(runs, given, strict=True):
                results.append((yield self._followed(inner, parameters)) or [])
            values[instruction.name] = self._result(instruction.opcode, marks, initial, results)
        root = call.computation.root
        return values.get(root.name, []) if root is not None else []

    def _result(
        self, opcode: str, marks: Sequence[ReadFrom], initial: Leaves, results: Sequence[Leaves]
    ) -> Leaves:
        """Return the result of an instruction from the results of its runs."""
        if opcode == "conditional":
            every = itertools.zip_longest(*results, fillvalue=())
            return [_joined(*filter(None, leaves)) for leaves in every]
        if opcode != "while":
            return results[0]
        carry: Leaves = []
        for mark, sources, after in zip(
            marks, initial, itertools.chain(results[0], itertools.repeat(())), strict=False
        ):
            if after == (mark,):  # The body returns it unchanged.
                carry.append(sources)
                continue
            self.carried[mark] = _joined(sources, after)
            carry.append(after)
        return carry

    def _value(
        self,
        call: ComputationRun,
        arguments: list[Leaves],
        values: dict[str, Leaves],
        instruction: Instruction,
    ) -> Leaves:
        unit = call.units.get(instruction.name)
        count = len(arrays(instruction.shape))
        if unit is not None:
            self._read(values, instruction, unit)
            return [(ReadFrom(KERNEL, unit, leaf),) for leaf in range(count)]
        match instruction.opcode:
            case "parameter":
                return dict(enumerate(arguments)).get(instruction.number, [])
            case "tuple":
                return [leaf for name in instruction.operands for leaf in values.get(name, [()])]
            case "get-tuple-element":
                return _element(call, values, instruction)
            case opcode if opcode.endswith(("-done", "-update")):
                # The result of an asynchronous operation is that of its start.
                (name, *_) = instruction.operands or ("",)
                if (start := call.units.get(name)) is not None:
                    return [(ReadFrom(KERNEL, start, leaf),) for leaf in range(count)]
                # A transfer: the same value elsewhere.
                return [_joined(*values.get(name, []))] * count
            case _:
                leaves = [leaf for name in instruction.operands for leaf in values.get(name, [])]
                if self.offloads and HOST_MARK in instruction.shape:
                    leaves = [_via_host(leaf) for leaf in leaves]
                return leaves if len(leaves) == count else [_joined(*leaves)] * count

    def _read(self, leaves_of: dict[str, Leaves], instruction: Instruction, unit: int) -> None:
        inputs: list[Value] = []
        computation = self.walk.units[unit].computation
        for name in dict.fromkeys(instruction.operands):
            operand = computation.by_name.get(name)
            is_read = operand is not None and operand.opcode != "after-all"
            values = arrays(operand.shape) if operand is not None and is_read else ()
            inputs += values
            for sources, value in zip(leaves_of.get(name, []), values, strict=False):
                if sources:
                    self.reads.append((sources, unit, value))
        self.flow.inputs[unit] = tuple(inputs)

    def _kernels(self, sources: tuple[ReadFrom, ...]) -> set[int]:
        return {each.number for each in self._resolve(sources) if each.what == KERNEL}

    def _resolve(self, sources: tuple[ReadFrom, ...]) -> tuple[ReadFrom, ...]:
        """Replace the sources that stand for a loop's carry."""
        return _joined(*[self._final(source) for source in sources])

    def _final(self, source: ReadFrom) -> tuple[ReadFrom, ...]:
        if source.what != _CARRIED:
            return (source,)
        if (final := self._resolved.get(source)) is not None:
            return final
        found: dict[ReadFrom, None] = {}
        visited = {source}
        waiting = [source]
        while waiting:
            current = waiting.pop()
            carried = self.carried.get(current._replace(via_host=False), ())
            for earlier in _via_host(carried) if current.via_host else carried:
                if earlier.what != _CARRIED:
                    found[earlier] = None
                elif (resolved := self._resolved.get(earlier)) is not None:
                    found.update(dict.fromkeys(resolved))
                elif earlier not in visited:
                    visited.add(earlier)
                    waiting.append(earlier)
        return self._resolved.setdefault(source, tuple(found))


def _element(call: ComputationRun, values: dict[str, Leaves], instruction: Instruction) -> Leaves:
    if not instruction.operands:
        return []
    name = instruction.operands[0]
    leaves = values.get(name, [])
    tuple_ = call.computation.by_name.get(name)
    index = int(instruction.attribute("index") or 0)
    if tuple_ is None:
        return leaves[index : index + 1]
    counts = [len(arrays(part)) for part in parts(tuple_.shape)]
    return leaves[sum(counts[:index]) :][: sum(counts[index : index + 1])]


def _via_host(sources: tuple[ReadFrom, ...]) -> tuple[ReadFrom, ...]:
    """Return the sources of a value that has been on the host."""
    return tuple(dict.fromkeys(source._replace(via_host=True) for source in sources))


def _joined(*leaves: tuple[ReadFrom, ...]) -> tuple[ReadFrom, ...]:
    """Return the sources of several values, without duplicates, as each value has none."""
    if len(leaves) == 1:
        return leaves[0]
    return tuple(dict.fromkeys(source for leaf in leaves for source in leaf))
