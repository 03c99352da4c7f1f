"""Follow values from the kernels that write them to their readers, through tuples and loops.

A value is represented by its sources, a tuple of them for each array in it.
A loop's carry is a source of its own, which stands for the initial value and the body's result; it
is resolved after all values have been followed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from jaxsight.compiler.hlo.walk import Call, Walk
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


class Source(NamedTuple):
    """Result `leaf` of kernel `number`, parameter `leaf`, or element `leaf` of a loop's carry.

    A tuple, as sources are hashed for each read.
    """

    what: EndKind | Literal["carried"]
    number: int
    """The kernel, or the loop."""
    leaf: int
    via_host: bool = False
    """Whether the value has been in the memory of the host since."""


Leaves = list[tuple[Source, ...]]
"""The sources of each array of a value."""


@dataclass(slots=True, eq=False)
class Flow:
    """All reads of values."""

    reads: list[tuple[Source, int, Value]] = field(default_factory=list)
    """(source, the kernel that reads it, the value), with resolved sources."""
    outputs: list[tuple[Source, int, Value]] = field(default_factory=list)
    """(source, index of the output, the value)."""
    inputs: dict[int, tuple[Value, ...]] = field(default_factory=dict)
    """The operands of each kernel, without duplicates."""
    feeds_loop: dict[int, set[int]] = field(default_factory=dict)
    """The loops that carry a kernel's results, by kernel."""
    chooses: set[int] = field(default_factory=set)
    """The kernels whose result selects the arm of a conditional."""

    def edges(self) -> tuple[Edge, ...]:
        """Return all edges, without duplicates."""
        edges: dict[tuple[Source, EndKind, int], Edge] = {}
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
        readers: dict[Source, tuple[Value, list[int]]] = {}
        for source, kernel, value in self.reads:
            if source.what == KERNEL and not source.via_host and source not in out:
                readers.setdefault(source, (value, []))[1].append(kernel)
        return tuple(
            Temporary(value, source.number, tuple(dict.fromkeys(kernels)), names[source.number])
            for source, (value, kernels) in readers.items()
        )


def follow(walk: Walk) -> Flow:
    """Return the flow of all values of a walk."""
    return _Following(walk).run()


@dataclass(slots=True, eq=False)
class _Frame:
    """A computation that is being followed."""

    call: Call
    arguments: list[Leaves]
    """The values of the parameters."""
    at: int = 0
    values: dict[str, Leaves] = field(default_factory=dict)
    waiting: list[tuple[str, Call]] = field(default_factory=list)
    results: list[Leaves] = field(default_factory=list)
    caller: Instruction | None = None


class _Following:
    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.offloads = bool(walk.moving)
        self.carried: dict[Source, tuple[Source, ...]] = {}
        self.reads: list[tuple[tuple[Source, ...], int, Value]] = []
        self.predicates: list[tuple[Source, ...]] = []
        self.flow = Flow()

    def run(self) -> Flow:
        top = self.walk.top
        if top is None:
            return self.flow
        parameters = top.computation.parameters()
        arguments: list[Leaves] = []
        leaf = 0
        for parameter in parameters:
            values = arrays(parameter.shape)
            arguments.append(
                [(Source(PARAMETER, 0, leaf + offset),) for offset in range(len(values))]
            )
            leaf += len(values)
        results = self._computations(top, arguments)
        resolver = _Resolver(self.carried)
        for sources, kernel, value in self.reads:
            for source in resolver.resolve(sources):
                self.flow.reads.append((source, kernel, value))
        root = top.computation.root
        values = arrays(root.shape) if root is not None else ()
        for index, sources in enumerate(results[: len(values)]):
            for source in resolver.resolve(sources):
                self.flow.outputs.append((source, index, values[index]))
        for sources in self.predicates:
            self.flow.chooses |= {
                source.number for source in resolver.resolve(sources) if source.what == KERNEL
            }
        for loop, sources in self.carried.items():
            for source in resolver.resolve(sources):
                if source.what == KERNEL:
                    self.flow.feeds_loop.setdefault(source.number, set()).add(loop.number)
        return self.flow

    def _computations(self, top: Call, arguments: list[Leaves]) -> Leaves:
        """Follow a run and all runs within it, and return the results.

        This uses its own stack, as loops may be nested deeper than Python's recursion limit.
        """
        stack = [_Frame(top, arguments)]
        while True:
            frame = stack[-1]
            if frame.waiting:
                role, call = frame.waiting.pop(0)
                stack.append(_Frame(call, self._arguments(frame, role)))
                continue
            if frame.caller is not None:
                frame.values[frame.caller.name] = self._result(frame)
                frame.caller = None
                frame.results = []
            instructions = frame.call.computation.instructions
            while frame.at < len(instructions):
                instruction = instructions[frame.at]
                frame.at += 1
                calls = frame.call.calls.get(instruction.name)
                if calls:
                    frame.caller = instruction
                    frame.waiting = list(calls)
                    break
                frame.values[instruction.name] = self._value(frame, instruction)
            if frame.caller is not None:
                continue
            root = frame.call.computation.root
            leaves = frame.values.get(root.name, []) if root is not None else []
            stack.pop()
            if not stack:
                return leaves
            stack[-1].results.append(leaves)

    def _arguments(self, frame: _Frame, role: str) -> list[Leaves]:
        """Return the parameters of the next run of `frame.caller`."""
        caller = frame.caller
        assert caller is not None
        operands = [frame.values.get(name, []) for name in caller.operands]
        match role:
            case "body" | "condition":
                loop = frame.call.loops[caller.name]
                initial = operands[0] if operands else []
                for leaf, sources in enumerate(initial):
                    self.carried.setdefault(Source(_CARRIED, loop, leaf), sources)
                return [[(Source(_CARRIED, loop, leaf),) for leaf in range(len(initial))]]
            case "branch":
                return (
                    [operands[1 + len(frame.results)]]
                    if len(operands) > 1 + len(frame.results)
                    else []
                )
            case _:
                return operands

    def _result(self, frame: _Frame) -> Leaves:
        """Return the result of `frame.caller` from `frame.results`, those of its runs."""
        caller = frame.caller
        assert caller is not None
        match caller.opcode:
            case "while":
                loop = frame.call.loops[caller.name]
                initial = frame.values.get(caller.operands[0], []) if caller.operands else []
                body = frame.results[0] if frame.results else []
                carry: Leaves = []
                for leaf, sources in enumerate(initial):
                    mark = Source(_CARRIED, loop, leaf)
                    after = body[leaf] if leaf < len(body) else ()
                    if after == (mark,):  # The body returns it unchanged.
                        carry.append(sources)
                        continue
                    self.carried[mark] = _joined(sources, after)
                    carry.append(after)
                return carry
            case "conditional":
                predicate = frame.values.get(caller.operands[0], []) if caller.operands else []
                self.predicates += predicate[:1]
                leaves = max((len(values) for values in frame.results), default=0)
                return [
                    _joined(*(values[leaf] for values in frame.results if leaf < len(values)))
                    for leaf in range(leaves)
                ]
            case _:
                return frame.results[0] if frame.results else []

    def _value(self, frame: _Frame, instruction: Instruction) -> Leaves:
        values = frame.values
        unit = frame.call.units.get(instruction.name)
        if unit is not None:
            self._read(values, instruction, unit)
            return [(Source(KERNEL, unit, leaf),) for leaf in range(len(arrays(instruction.shape)))]
        match instruction.opcode:
            case "parameter":
                number = instruction.number
                return frame.arguments[number] if number < len(frame.arguments) else []
            case "tuple":
                return [leaf for name in instruction.operands for leaf in values.get(name, [()])]
            case "get-tuple-element":
                return self._element(frame, instruction)
            case opcode if opcode.endswith(("-done", "-update")):
                return self._done(frame, instruction)
            case _:
                leaves = [leaf for name in instruction.operands for leaf in values.get(name, [])]
                if self.offloads and HOST_MARK in instruction.shape:
                    leaves = [_via_host(leaf) for leaf in leaves]
                count = len(arrays(instruction.shape))
                if len(leaves) == count:
                    return leaves
                return [_joined(*leaves)] * count

    def _read(self, leaves_of: dict[str, Leaves], instruction: Instruction, unit: int) -> None:
        inputs: list[Value] = []
        computation = self.walk.units[unit].computation
        for name in dict.fromkeys(instruction.operands):
            leaves = leaves_of.get(name, [])
            operand = computation.by_name.get(name)
            is_read = operand is not None and operand.opcode != "after-all"
            values = arrays(operand.shape) if operand is not None and is_read else ()
            inputs += values
            for leaf, sources in enumerate(leaves):
                if sources and leaf < len(values):
                    self.reads.append((sources, unit, values[leaf]))
        self.flow.inputs[unit] = tuple(inputs)

    def _element(self, frame: _Frame, instruction: Instruction) -> Leaves:
        if not instruction.operands:
            return []
        name = instruction.operands[0]
        leaves = frame.values.get(name, [])
        tuple_ = frame.call.computation.by_name.get(name)
        index = int(instruction.attribute("index") or 0)
        if tuple_ is None:
            return leaves[index : index + 1]
        elements = parts(tuple_.shape)
        start = sum(len(arrays(part)) for part in elements[:index])
        count = len(arrays(elements[index])) if index < len(elements) else 0
        return leaves[start : start + count]

    def _done(self, frame: _Frame, instruction: Instruction) -> Leaves:
        """Return the result of the end of an asynchronous operation, which is that of its start."""
        count = len(arrays(instruction.shape))
        if not instruction.operands:
            return [()] * count
        before = frame.values.get(instruction.operands[0], [])
        start = frame.call.computation.by_name.get(instruction.operands[0])
        if start is not None and start.name in frame.call.units:
            unit = frame.call.units[start.name]
            return [(Source(KERNEL, unit, leaf),) for leaf in range(count)]
        # A transfer: the same value elsewhere.
        return [_joined(*before)] * count


def _via_host(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources of a value that has been on the host."""
    return tuple(dict.fromkeys(source._replace(via_host=True) for source in sources))


def _joined(*leaves: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources of several values, without duplicates, as each value has none."""
    if len(leaves) == 1:
        return leaves[0]
    return tuple(dict.fromkeys(source for leaf in leaves for source in leaf))


class _Resolver:
    """Replaces sources that stand for a loop's carry."""

    def __init__(self, carried: dict[Source, tuple[Source, ...]]) -> None:
        self._carried = carried
        self._known: dict[Source, tuple[Source, ...]] = {}

    def resolve(self, sources: tuple[Source, ...]) -> tuple[Source, ...]:
        return _joined(*[self._resolve(source) for source in sources])

    def _resolve(self, source: Source) -> tuple[Source, ...]:
        if source.what != _CARRIED:
            return (source,)
        final = self._known.get(source)
        if final is None:
            resolved_sources: dict[Source, None] = {}
            visited = {source}
            waiting = [source]
            while waiting:
                current = waiting.pop()
                carried = self._carried.get(current._replace(via_host=False), ())
                for earlier in _via_host(carried) if current.via_host else carried:
                    if earlier.what != _CARRIED:
                        resolved_sources[earlier] = None
                    elif (resolved := self._known.get(earlier)) is not None:
                        resolved_sources.update(dict.fromkeys(resolved))
                    elif earlier not in visited:
                        visited.add(earlier)
                        waiting.append(earlier)
            final = self._known[source] = tuple(resolved_sources)
        return final
