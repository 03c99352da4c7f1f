"""Convert HLO text to a kernel graph with the other modules."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from jaxsight.compiler.hlo import sorts
from jaxsight.compiler.hlo.barriers import Boundary, boundary, reasons
from jaxsight.compiler.hlo.distributed import collectives
from jaxsight.compiler.hlo.flow import ArrayReads, follow
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.host_transfers import host_transfers
from jaxsight.compiler.hlo.kinds import HOST_CALLBACK, TRIVIAL, kind
from jaxsight.compiler.hlo.undecided import launches_besides, undecided
from jaxsight.compiler.hlo.walk import Unit, Walk, walk
from jaxsight.compiler.hlo.work import work_of
from jaxsight.hlo.shapes import arrays, dtype, elements, parts, without_layout
from jaxsight.hlo.text import HloModule, Instruction, device_count, parse
from jaxsight.text.parsing import without_collections
from jaxsight.wire.chunks import equation_order
from jaxsight.wire.kernel_graph import KERNEL, Constant, Graph, Kernel, Value
from jaxsight.wire.meshes import Mesh

# Find the equations of kernels that compute none: copies, pads, changes of layout.
#
# XLA inserts these kernels without a name from the program (copies of loop carries in
# `copy_insertion.cc`, transposes in `layout_assignment.cc`), so they are attributed to the readers
# of their results.


def feeds(
    walked: Walk, equations: Sequence[tuple[str, ...]], ends_at: Sequence[str], flow: ArrayReads
) -> list[tuple[str, ...]]:
    """Return the equations that each kernel feeds, none for a kernel that computes some itself.

    They are tried in this order: the loop that carries its results, the kernels that read them, the
    conditional or the loop around it, the kernels whose results it copies.
    """
    readers: dict[int, list[int]] = {}
    sources: dict[int, list[int]] = {}
    for source, kernel, _ in flow.reads:
        if source.what == KERNEL and source.number != kernel:
            readers.setdefault(source.number, []).append(kernel)
            sources.setdefault(kernel, []).append(source.number)

    def nearest(start: int, neighbours: Mapping[int, Sequence[int]]) -> list[str]:
        """Return the equations of the nearest kernels that compute some, one for each."""
        paths: dict[str, None] = {}
        visited, waiting = {start}, deque(neighbours.get(start, ()))
        while waiting and len(visited) < _FARTHEST:
            kernel = waiting.popleft()
            if kernel in visited:
                continue
            visited.add(kernel)
            if own := equations[kernel]:
                paths[ends_at[kernel] if ends_at[kernel] in own else own[-1]] = None
            else:
                waiting += neighbours.get(kernel, ())
        return list(paths)

    def fed(index: int) -> tuple[str, ...]:
        unit, loops = walked.units[index], walked.loops
        carrying = [loops[loop].equation for loop in sorted(flow.feeds_loop.get(index, ()))]
        around = [walked.branches[unit.branch].equation] if unit.branch >= 0 else []
        around += [loops[loop].equation for loop in reversed(unit.loops)]
        for paths in (
            [path for path in carrying if path],
            nearest(index, readers),
            [path for path in around if path][:1],
            nearest(index, sources),
        ):
            if paths:
                return tuple(dict.fromkeys(paths))
        return ()

    return [() if own else fed(index) for index, own in enumerate(equations)]


_FARTHEST = 1000
"""Kernels among which those with an equation are looked for, a choice: a program may have many that
compute none."""
_PASSED_ON = frozenset({"parameter", "constant", "bitcast", "tuple", "get-tuple-element"})
"""Operations in a fusion that have the name of an equation that another kernel computed."""
_SCRATCH = re.compile(r"__cu(blas|dnn|b)\$|xla\.gpu\.ext\.cub_")
_LARGE = 64
"""Bytes of a constant that the graph contains at least, chosen: small ones are part of the code."""


def read(
    text: str,
    *,
    constants: Collection[str] = (),
    barriers: Iterable[str] = (),
    platform: str = "cpu",
    capability: str = "",
    trips: Mapping[str, int] | None = None,
    communicates: Collection[str] = (),
    meshes: Sequence[Mesh] = (),
    workspace: int | None = None,
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
        capability: the compute capability of a GPU, such as `9.0`, which determines how CUB sorts;
            empty if unknown.
        trips: trip counts of loops by the paths of their equations, for loops whose trip count is
            not in the HLO.
        communicates: paths of the equations that are collectives, such as those of `psum`; the
            partitioner inserted the collectives of all others.
        meshes: the meshes of the program, for the axes that collectives communicate over.
        workspace: for a GPU that is not present, the bytes that XLA gives to a call of cuBLAS
            there, which autotuning may choose; `None` if the device itself was asked.
    """
    # Each collection would visit all instructions, which have no cycles.
    with without_collections():
        module = parse(text)
        walked = walk(module, platform=platform, trips=trips)
        program = collectives.PartitionedProgram(
            module, device_count(module.header), tuple(meshes), frozenset(communicates)
        )
        describer = _Describer(walked, program, capability, workspace)
        return _graph(walked, frozenset(constants), barriers, describer)


def _graph(
    walked: Walk, constants: frozenset[str], barriers: Iterable[str], describer: _Describer
) -> Graph:
    module, entry = walked.module, walked.module.entry
    flow = follow(walked)
    kernels = _kernels(walked, flow, barriers, describer)
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
        temporaries=flow.temporaries(kernel.ends_at for kernel in kernels),
        constants=_constants(module, constants),
        transfers=walked.transfers,
        host_transfers=host_transfers(walked, kernels),
        notes=(*module.notes(), *walked.notes),
    )


def _kernels(
    walked: Walk, flow: ArrayReads, barriers: Iterable[str], describer: _Describer
) -> tuple[Kernel, ...]:
    """Return the kernels of a module, in the order in which they run."""
    units = walked.units
    described = [describer.describe(unit) for unit in units]
    boundaries = [boundary for _, boundary in described]
    equations = [kernel.equations for kernel, _ in described]
    ended = reasons(units, boundaries, flow, barriers)
    ends = [
        equation or next(filter(None, (*boundary.results, *_equations(unit))), "")
        for unit, boundary, (_, equation) in zip(units, boundaries, ended, strict=True)
    ]
    fed = feeds(walked, equations, ends, flow)
    return tuple(
        replace(kernel, ends_because=why, ends_at=at, inputs=flow.inputs.get(index, ()), feeds=fed)
        for index, ((kernel, _), (why, _), at, fed) in enumerate(
            zip(described, ended, ends, fed, strict=True)
        )
    )


class _Describer:
    """Describes the kernels of a module in the order in which they run.

    Their instructions are dropped afterwards.
    """

    def __init__(
        self,
        walked: Walk,
        program: collectives.PartitionedProgram,
        capability: str,
        workspace: int | None,
    ) -> None:
        self._walked = walked
        self._program = program
        self._capability = capability
        self._workspace = workspace
        self._done: set[tuple[str, str, str]] = set()

    def describe(self, unit: Unit) -> tuple[Kernel, Boundary]:
        """Return the next kernel, as far as its own instructions say what it is."""
        instruction, platform = unit.instruction, self._walked.platform
        fused = Fused(instruction, self._walked.module)
        own = kind(fused)
        computed, passed_on, recomputed = self._equations(fused)
        equations = sorted(computed or {*passed_on, *_equations(unit)}, key=equation_order)
        sort = sorts.launches(
            self._walked.module, unit.computation, fused, platform, self._capability
        )
        least, most = sort or (1, 1)
        launches = unit.launches * most
        tuned = undecided(fused, self._workspace) if self._workspace is not None else None
        work = work_of(fused, unit.computation, self._capability)
        copies = own.title == HOST_CALLBACK and platform != "cpu"  # on CPUs, callbacks do not
        kernel = Kernel(
            name=instruction.name,
            kind=own.word,
            title=f"{own.title} (copies to the host)" if copies else own.title,
            ends_because="",
            equations=tuple(equations),
            outputs=_outputs(instruction),
            workspace=_workspace(instruction),
            flops=sum(operations.count for operations in (work.operations if work else ())),
            loops=unit.loops,
            branch=unit.branch,
            launches=launches,
            runs=self._walked.runs(unit) if launches else 0,
            work=work,
            at_least=unit.at_least * least,
            besides=launches_besides(fused, own, tuned, platform),
            recomputes=recomputed,
            instruction=instruction.line,
            collective=self._program.describe(fused, unit.computation, equations)
            if own.word == "collective"
            else None,
            undecided=tuned,
        )
        return kernel, boundary(unit, own, fused)

    def _equations(self, fused: Fused) -> tuple[set[str], set[str], tuple[str, ...]]:
        """Return the equations that a kernel computes, passes on, and computes again."""
        computed: set[str] = set()
        passed_on: set[str] = set()
        recomputed: dict[str, None] = {}
        operations = set()
        beside = collectives.is_beside(fused)
        for inner in fused.inside:
            path = inner.equation
            if not path or (beside and inner.opcode in collectives.COLLECTIVES):
                continue
            (passed_on if inner.opcode in _PASSED_ON else computed).update(inner.equations)
            if inner.opcode not in TRIVIAL:
                operation = (path, inner.opcode, without_layout(inner.shape))
                if operation in self._done:
                    recomputed[path] = None
                operations.add(operation)
        self._done |= operations
        return computed, passed_on, tuple(recomputed)


def _equations(unit: Unit) -> tuple[str, ...]:
    """Return the equations of an operation.

    XLA rewrites a product with a vector to one with a matrix (`gemv_rewriter.cc`), and a selection
    to a custom call (`topk_rewriter.cc`), and keeps the name only of the operation after it.
    """
    instruction = unit.instruction
    if instruction.opcode in ("dot", "custom-call") and not instruction.op_name:
        instruction = unit.computation.passed_on.get(instruction.name, instruction)
    return instruction.equations


def _workspace(instruction: Instruction) -> int:
    """Return the bytes of scratch memory of a call of cuBLAS, cuDNN or CUB.

    XLA makes it the last result of the call, an array of bytes (`gemm_rewriter.cc`,
    `cudnn_fused_conv_rewriter.cc`, `sort_rewriter.cc`).
    """
    if not _SCRATCH.match(instruction.attribute("custom_call_target")):
        return 0
    values = arrays(instruction.shape)[1:]
    return values[-1].bytes if values and values[-1].text.startswith(("s8[", "u8[")) else 0


def _outputs(instruction: Instruction) -> tuple[Value, ...]:
    """Return the values that an instruction writes, without a library's workspace.

    A start returns operands and contexts too (`xla/hlo/ir/hlo_instruction.cc`, `CreateCopyStart`,
    `CreateAsyncStart`).
    The result of a receive is followed by a context and a token.
    """
    if (started := collectives.results(instruction)) is not None:
        return started
    elements = parts(instruction.shape)
    values = arrays(instruction.shape)
    match instruction.opcode:
        case "copy-start" if elements:
            return arrays(elements[0])
        case "send" | "recv":
            return values[: instruction.opcode == "recv"]
        case opcode if opcode.endswith("-start") and len(elements) > 1:
            return arrays(elements[1])
        case _:
            return values[:-1] if _workspace(instruction) else values


def _constants(module: HloModule, own: frozenset[str]) -> tuple[Constant, ...]:
    """Return the constants; those without the size and dtype of one in `own` are folded."""
    sizes = {(dtype(text), elements(text)) for text in own}
    return tuple(
        Constant(
            instruction.name,
            value,
            tuple(filter(None, [instruction.equation])),
            folded=(dtype(value.text), elements(value.text)) not in sizes,
        )
        for instruction in module.constants()
        for value in arrays(instruction.shape)[:1]
        if value.bytes >= _LARGE
    )
