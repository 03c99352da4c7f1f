"""Convert HLO text to a kernel graph with the other modules."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from jaxsight.compiler.hlo.barriers import reasons
from jaxsight.compiler.hlo.feeds import feeds
from jaxsight.compiler.hlo.flow import Flow, follow
from jaxsight.compiler.hlo.kinds import HOST_CALLBACK, TRIVIAL, Fused, kind
from jaxsight.compiler.hlo.shapes import arrays, dtype, elements, parts
from jaxsight.compiler.hlo.text import Instruction, Module, parse
from jaxsight.compiler.hlo.walk import Unit, Walk, walk
from jaxsight.compiler.hlo.work import Works
from jaxsight.wire.kernel_graph import Constant, Graph, Kernel, Loop, Temporary, Value

_NUMBERS = re.compile(r"\d+|\D+")
_PASSED_ON = frozenset({"parameter", "constant", "bitcast", "tuple", "get-tuple-element"})
"""Operations in a fusion that have the name of an equation that another kernel computed."""
_SCRATCH = re.compile(r"__cu(blas|dnn)\$")
_LARGE = 64
"""Minimum size in bytes of a constant that the graph contains."""


def read(
    text: str,
    *,
    constants: Collection[str] = (),
    barriers: Iterable[str] = (),
    platform: str = "cpu",
    trips: Mapping[str, int] | None = None,
) -> Graph:
    """Return the kernel graph of an optimized module.

    Args:
        text: the HLO as XLA prints it after optimization.
        constants: types (`f32[1024]`) of the constants of the program before compilation; all
            others are folded ones.
        barriers: paths of the equations whose results go into an `optimization_barrier`, which XLA
            removes at the end.
        platform: the target's platform, `cpu`, `cuda`, `rocm` or `tpu`, which determines the
            launches of loops and sorts.
        trips: trip counts of loops by the paths of their equations, for loops whose trip count is
            not in the HLO.
    """
    module = parse(text)
    walked = walk(module, platform=platform, trips=trips)
    flow = follow(walked)
    kernels = _kernels(walked, flow, barriers)
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


def _kernels(walked: Walk, flow: Flow, barriers: Iterable[str]) -> tuple[Kernel, ...]:
    """Return the kernels of a module, in the order in which they run."""
    units, fused = walked.units, Fused(walked.module)
    kinds = [kind(unit.instruction, fused) for unit in units]
    boundaries = reasons(units, kinds, fused, flow, barriers)
    computed = _Computed(fused)
    works = Works(fused, walked.module)
    equations = [computed.equations(unit) for unit in units]
    ends = [
        equation or _ends_at(unit, fused)
        for unit, (_, equation) in zip(units, boundaries, strict=True)
    ]
    fed = feeds(units, equations, ends, walked.loops, walked.branches, flow)
    kernels = []
    for index, unit in enumerate(units):
        instruction = unit.instruction
        work = works.of(instruction, unit.computation)
        kernel = Kernel(
            name=instruction.name,
            kind=kinds[index].word,
            what=_what(kinds[index].what, walked.platform),
            ends_because=boundaries[index][0],
            equations=equations[index],
            ends_at=ends[index],
            inputs=flow.inputs.get(index, ()),
            outputs=_outputs(instruction),
            workspace=_workspace(instruction),
            flops=sum(operations.count for operations in (work.operations if work else ())),
            loops=unit.loops,
            branch=unit.branch,
            launches=unit.launches,
            runs=_runs(unit, walked.loops),
            work=work,
            at_least=unit.at_least,
            recomputes=computed.recomputed(instruction),
            feeds=fed[index],
            instruction=instruction.line,
        )
        kernels.append(kernel)
    return tuple(kernels)


def order(path: str) -> list[tuple[int, str]]:
    """Return a key that sorts paths of equations in program order: `3/body/10` after `3/body/2`."""
    return [
        (int(part), "") if part.isdigit() else (-1, part)
        for piece in path.split("/")
        for part in _NUMBERS.findall(piece)
    ]


class _Computed:
    """The equations that kernels compute, and those that earlier kernels have computed already."""

    def __init__(self, fused: Fused) -> None:
        self._fused = fused
        self._done: set[tuple[str, str, str]] = set()

    def equations(self, unit: Unit) -> tuple[str, ...]:
        """Return the equations that a kernel computes, or else those that it passes on."""
        inside = self._fused.inside(unit.instruction)
        paths = {inner.equation for inner in inside if inner.opcode not in _PASSED_ON} - {""}
        if not paths:
            paths = {inner.equation for inner in inside} | {_equation(unit)}
        return tuple(sorted(paths - {""}, key=order))

    def recomputed(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the equations of a kernel that an earlier kernel has computed too."""
        equations: dict[str, None] = {}
        operations = set()
        for inner in self._fused.inside(instruction):
            path = inner.equation
            if not path or inner.opcode in TRIVIAL:
                continue
            operation = (path, inner.opcode, inner.shape.split("{", 1)[0])
            if operation in self._done:
                equations[path] = None
            operations.add(operation)
        self._done |= operations
        return tuple(equations)


def _equation(unit: Unit) -> str:
    """Return the equation of an operation.

    XLA rewrites a product with a vector to one with a matrix, and a selection to a custom call,
    and keeps the name only of the operation after it.
    """
    instruction = unit.instruction
    if instruction.opcode in ("dot", "custom-call") and not instruction.op_name:
        instruction = unit.computation.passed_on.get(instruction.name, instruction)
    return instruction.equation


def _ends_at(unit: Unit, fused: Fused) -> str:
    for root in fused.roots(unit.instruction):
        if path := root.equation:
            return path
    return _equation(unit)


def _workspace(instruction: Instruction) -> int:
    """Return the bytes of scratch memory of a cuBLAS or cuDNN call.

    XLA makes it the last result of the call, an array of bytes (`gemm_rewriter.cc`,
    `cudnn_fused_conv_rewriter.cc`).
    """
    if instruction.opcode != "custom-call" or not _SCRATCH.match(
        instruction.attribute("custom_call_target")
    ):
        return 0
    values = arrays(instruction.shape)
    scratch = len(values) > 1 and values[-1].text.startswith(("s8[", "u8["))
    return values[-1].bytes if scratch else 0


def _outputs(instruction: Instruction) -> tuple[Value, ...]:
    """Return the values that an instruction writes, without a library's workspace.

    A start returns operands and contexts too (`xla/hlo/ir/hlo_instruction.cc`, `CreateCopyStart`,
    `CreateAsyncStart`), except that of an all-reduce.
    The result of a receive is followed by a context and a token.
    """
    elements = parts(instruction.shape)
    values = arrays(instruction.shape)
    match instruction.opcode:
        case "copy-start" if elements:
            return arrays(elements[0])
        case "all-reduce-start":
            return values
        case "send" | "recv":
            return values[: instruction.opcode == "recv"]
        case opcode if opcode.endswith("-start") and len(elements) > 1:
            return arrays(elements[1])
        case _:
            return values[:-1] if _workspace(instruction) else values


def _what(words: str, platform: str) -> str:
    """Return the description of a kernel; on CPUs, callbacks do not copy."""
    copies = words == HOST_CALLBACK and platform != "cpu"
    return f"{words} (copies to the host)" if copies else words


def _runs(unit: Unit, loops: Sequence[Loop]) -> int:
    """Return the iterations of the loops around it, or 0 for a condition that is never launched."""
    return math.prod(loops[index].trips or 1 for index in unit.loops) if unit.launches else 0


def _temporaries(flow: Flow, kernels: tuple[Kernel, ...]) -> tuple[Temporary, ...]:
    return flow.temporaries(kernel.ends_at for kernel in kernels)


def _constants(module: Module, own: frozenset[str]) -> tuple[Constant, ...]:
    """Return the constants; those without the size and dtype of one in `own` are folded."""
    sizes = {(dtype(text), elements(text)) for text in own}
    constants = []
    for computation in module.computations.values():
        for instruction in computation.instructions:
            if instruction.opcode != "constant" or elements(instruction.shape) < 2:
                continue
            (value, *_) = arrays(instruction.shape) or (None,)
            if value is None or value.bytes < _LARGE:
                continue
            path = instruction.equation
            constants.append(
                Constant(
                    instruction.name,
                    value,
                    (path,) if path else (),
                    folded=(dtype(value.text), elements(value.text)) not in sizes,
                )
            )
    return tuple(constants)
