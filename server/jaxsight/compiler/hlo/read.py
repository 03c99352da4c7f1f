"""From text to graph: puts the parts together."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

from jaxsight.compiler.graph import Constant, Graph, Kernel, Temporary, Value
from jaxsight.compiler.hlo.barriers import reasons
from jaxsight.compiler.hlo.flops import flops
from jaxsight.compiler.hlo.flow import Flow, follow
from jaxsight.compiler.hlo.kinds import TRIVIAL, Fused, kind
from jaxsight.compiler.hlo.shapes import arrays, elements
from jaxsight.compiler.hlo.text import Instruction, Module, parse
from jaxsight.compiler.hlo.walk import Unit, walk

_NUMBERS = re.compile(r"\d+|\D+")
_LARGE = 64
"""Bytes from which a constant is told of."""


def read(
    text: str,
    *,
    constants: Collection[str] = (),
    barriers: Iterable[str] = (),
    conditions: bool = True,
    trips: Mapping[str, int] | None = None,
) -> Graph:
    """The kernel graph of an optimized module.

    Args:
        text: the HLO as XLA prints it after optimization.
        constants: types (`f32[1024]`) of the constants that the program had before it was compiled; all others are folded ones.
        barriers: paths of the equations whose results go into an `optimization_barrier`, which XLA removes at the end.
        conditions: whether the condition of a loop is launched that goes round a known number of times; on a CPU it is not.
        trips: how often the loops of equations (by path) go round, where the HLO does not tell.
    """
    module = parse(text)
    walked = walk(module, conditions=conditions, trips=trips)
    fused = Fused(module)
    flow = follow(walked)
    kinds = [kind(unit.instruction, fused) for unit in walked.units]
    why = reasons(walked.units, kinds, fused, flow, barriers)
    computed = _Computed(fused)
    kernels = tuple(
        Kernel(
            name=unit.instruction.name,
            kind=kinds[index].word,
            what=kinds[index].what,
            ends_because=why[index][0],
            equations=computed.equations(unit),
            ends_at=why[index][1] or _ends_at(unit, fused),
            inputs=flow.inputs.get(index, ()),
            outputs=_outputs(unit.instruction),
            flops=_flops(unit, fused, module),
            loops=unit.loops,
            branch=unit.branch,
            launches=unit.launches,
            recomputes=computed.again(unit.instruction),
            instruction=unit.instruction.line,
        )
        for index, unit in enumerate(walked.units)
    )
    entry = module.entry
    root = entry.root if entry is not None else None
    return Graph(
        module=module.name,
        kernels=kernels,
        edges=flow.edges(),
        loops=tuple(walked.loops),
        branches=tuple(walked.branches),
        parameters=tuple(
            value
            for parameter in (entry.parameters() if entry is not None else ())
            for value in arrays(parameter.shape)
        ),
        outputs=arrays(root.shape) if root is not None else (),
        temporaries=_temporaries(flow, kernels),
        constants=_constants(module, frozenset(constants)),
        transfers=walked.transfers,
        notes=(*module.notes, *walked.notes),
    )


def order(path: str) -> list[tuple[int, str]]:
    """A key that sorts paths of equations as the program runs: `3/body/10` behind `3/body/2`."""
    return [
        (int(part), "") if part.isdigit() else (-1, part)
        for piece in path.split("/")
        for part in _NUMBERS.findall(piece)
    ]


class _Computed:
    """Which equations kernels compute, and what earlier ones had computed already."""

    def __init__(self, fused: Fused) -> None:
        self._fused = fused
        self._done: set[tuple[str, str, str]] = set()

    def equations(self, unit: Unit) -> tuple[str, ...]:
        inside = self._fused.inside(unit.instruction)
        found = {each.equation for each in inside} | {_equation(unit)}
        return tuple(sorted(found - {""}, key=order))

    def again(self, instruction: Instruction) -> tuple[str, ...]:
        found: dict[str, None] = {}
        here = set()
        for each in self._fused.inside(instruction):
            path = each.equation
            if not path or each.opcode in TRIVIAL:
                continue
            done = (path, each.opcode, each.shape.split("{", 1)[0])
            if done in self._done:
                found[path] = None
            here.add(done)
        self._done |= here
        return tuple(found)


def _equation(unit: Unit) -> str:
    """What an operation comes from. XLA rewrites a product with a vector to one with a matrix, and leaves only the bitcast behind it its name."""
    instruction = unit.instruction
    if instruction.opcode == "dot" and not instruction.op_name:
        instruction = unit.computation.reshaped.get(instruction.name, instruction)
    return instruction.equation


def _ends_at(unit: Unit, fused: Fused) -> str:
    for root in fused.roots(unit.instruction):
        if path := root.equation:
            return path
    return _equation(unit)


def _outputs(instruction: Instruction) -> tuple[Value, ...]:
    values = arrays(instruction.shape)
    if instruction.opcode.endswith("-start") and len(values) > 1:
        return values[len(values) // 2 :]  # A start gives its operands too.
    return values


def _flops(unit: Unit, fused: Fused, module: Module) -> int:
    lookup = _lookup(unit, fused, module)
    return flops((each, lookup(each)) for each in fused.inside(unit.instruction))


def _lookup(
    unit: Unit, fused: Fused, module: Module
) -> Callable[[Instruction], Callable[[str], Instruction | None]]:
    own = unit.computation.by_name

    def of(instruction: Instruction) -> Callable[[str], Instruction | None]:
        if instruction is unit.instruction:
            return own.get
        return fused.computation_of(instruction).by_name.get

    return of


def _temporaries(flow: Flow, kernels: tuple[Kernel, ...]) -> tuple[Temporary, ...]:
    return flow.temporaries(kernel.ends_at for kernel in kernels)


def _constants(module: Module, own: frozenset[str]) -> tuple[Constant, ...]:
    found = []
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if instruction.opcode != "constant" or elements(instruction.shape) < 2:
                continue
            (value, *_) = arrays(instruction.shape) or (None,)
            if value is None or value.bytes < _LARGE:
                continue
            path = instruction.equation
            found.append(
                Constant(instruction.name, value, (path,) if path else (), value.text not in own)
            )
    return tuple(found)
