"""Describe the communication of kernels: what is sent, between which devices, and why."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from jaxsight.compiler.hlo.distributed import groups
from jaxsight.compiler.hlo.fused import Fused
from jaxsight.compiler.hlo.walk import ANNOTATIONS, FREE, is_end_of_async
from jaxsight.hlo.shapes import arrays, parts, total_bytes
from jaxsight.hlo.text import Computation, HloModule, Instruction
from jaxsight.wire.kernel_graph import Collective, CollectiveKind, Value
from jaxsight.wire.meshes import Mesh

COLLECTIVES: Mapping[CollectiveKind, str] = {
    "all-reduce": "all-reduce",
    "all-gather": "all-gather",
    "all-to-all": "all-to-all",
    "ragged-all-to-all": "ragged all-to-all",
    "reduce-scatter": "reduce-scatter",
    "collective-permute": "collective permute",
    "collective-broadcast": "collective broadcast",
    "send": "send",
    "recv": "receive",
}
"""Operations that communicate, with their descriptions."""

_KINDS: Mapping[str, CollectiveKind] = {kind: kind for kind in COLLECTIVES}

STARTS = frozenset(f"{name}-start" for name in COLLECTIVES)
_BESIDE = "async_collective_fusion"
"""The beginning of the names of computations in which such a collective goes on beside others."""
_SCATTERS = "all-reduce-scatter"
"""The same for an all-reduce of which a TPU computes only each device's own part."""
_PAIRS = "source_target_pairs="
_GROUPS = "replica_groups="
_SENDS = '_xla_send_recv_source_target_pairs="'
_GLOBAL = "use_global_device_ids=true"
_WITH_GLOBAL = ("all-reduce", "all-gather", "reduce-scatter")
_SYNCHRONOUS = '"is_sync":true'
_SKIPPED = frozenset({"convert", "copy", "bitcast", "reshape", "tuple"})


def collective_kind(opcode: str) -> CollectiveKind | None:
    """Return the kind of collective that an operation is, if it is one."""
    return _KINDS.get(opcode)


def collective_in(fused: Fused) -> Instruction | None:
    """Return the operation that communicates, if a kernel is a collective."""
    instruction = fused.instruction
    opcode = _opcode(instruction)
    if opcode in COLLECTIVES:
        return instruction
    if instruction.opcode not in ("fusion", "fusion-start", "async-start") or is_beside(fused):
        return None
    return next((inner for inner in fused.inside if _opcode(inner) in COLLECTIVES), None)


def is_beside(fused: Fused) -> bool:
    """Return whether a kernel is a TPU's fusion beside which a collective goes on."""
    return fused.instruction.calls.startswith(_BESIDE)


def results(instruction: Instruction) -> tuple[Value, ...] | None:
    """Return the results of the start of a collective, without its operands and contexts.

    The start of an all-reduce returns only results before JAX 0.12 (`CreateAllReduceStart` in
    `xla/hlo/ir/hlo_instruction.cc`), and operands and results since.
    `None` for other instructions.
    """
    elements = parts(instruction.shape)
    if instruction.opcode == "all-reduce-start":
        with_operands = len(elements) > 1 and elements[0].startswith("(")
        return arrays(elements[1] if with_operands else instruction.shape)
    if instruction.opcode == "fusion" and instruction.name.startswith("async-collective-start"):
        return arrays(elements[1]) if len(elements) > 1 else None
    return None


@dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """What is known of the program whose collectives are described."""

    module: HloModule
    devices: int
    meshes: Sequence[Mesh] = ()
    communicates: Collection[str] = frozenset()
    """The paths of the equations that are collectives."""

    def describe(
        self, fused: Fused, computation: Computation, equations: Iterable[str]
    ) -> Collective | None:
        """Return the communication of a kernel, or `None` if it is no collective.

        Args:
            fused: the kernel.
            computation: the computation of its instruction.
            equations: the paths of its equations.
        """
        inner = collective_in(fused)
        if inner is None:
            return None
        kind = _KINDS[_opcode(inner)]
        start = fused.instruction
        if kind == "all-reduce" and start.calls.startswith(_SCATTERS):
            kind = "reduce-scatter"
        pairs = _PAIRS in inner.attributes or _SENDS in inner.attributes
        devices = self._groups(inner, pairs)
        holder = computation if inner is start else fused.body or computation
        return Collective(
            kind=kind,
            bytes=_bytes(inner, holder),
            groups=devices,
            axes=groups.axes_of(devices, self.meshes, pairs=pairs),
            inserted=not any(map(self._asks, equations)),
            is_async=is_async(start, computation, self.module),
            reduction=self._reduction(inner),
        )

    def _groups(self, instruction: Instruction, pairs: bool) -> groups.Groups:
        attributes = instruction.attributes
        if pairs:
            begin = _PAIRS if _PAIRS in attributes else _SENDS
            return groups.pairs(attributes.split(begin, 1)[1])
        if _GROUPS not in attributes:
            return ()
        across = "channel_id=" in attributes and _GLOBAL not in attributes
        alone = "replica_count=" not in self.module.header
        if across and alone and _opcode(instruction) in _WITH_GLOBAL:
            return (tuple(range(self.devices)),)  # The groups are of replicas, of which one exists.
        return groups.parse(attributes.split(_GROUPS, 1)[1], self.devices)

    def _asks(self, path: str) -> bool:
        """Return whether an equation, or one around it, asks for communication."""
        pieces = path.split("/")
        return any("/".join(pieces[:end]) in self.communicates for end in range(1, len(pieces) + 1))

    def _reduction(self, instruction: Instruction) -> str:
        """Return the operation of a reduction, or `""`."""
        for name in instruction.called.get("to_apply", ()):
            computation = self.module.computation(name)
            if computation is not None and (root := computation.root) is not None:
                operation = computation.source(root, _SKIPPED)
                if len(operation.operands) == 2:
                    return operation.opcode
        return ""


def _opcode(instruction: Instruction) -> str:
    return instruction.opcode.removesuffix("-start")


def _bytes(instruction: Instruction, computation: Computation) -> int:
    """Return the bytes of the operands or of the results, whichever are more."""
    read = sum(total_bytes(operand.shape) for operand in computation.operands(instruction))
    values, elements = results(instruction), parts(instruction.shape)
    if values is not None:
        return max(read, sum(value.bytes for value in values))
    shape = instruction.shape
    if instruction.opcode == "recv":
        shape = elements[0]
    elif instruction.opcode in STARTS and len(elements) > 1:
        shape = elements[1]
    return read if instruction.opcode == "send" else max(read, total_bytes(shape))


def is_async(start: Instruction, computation: Computation, module: HloModule) -> bool:
    """Return whether kernels that do not communicate run between a start and its end.

    The end of a start in the body of a loop may be in the next iteration.
    """
    is_start = start.opcode.endswith("-start") or start.opcode in ("send", "recv")
    if not (is_start or results(start) is not None) or _SYNCHRONOUS in start.attributes:
        return False
    instructions = computation.instructions
    at = bisect.bisect_left(instructions, start.line, key=lambda instruction: instruction.line)
    carried = {start.name}
    for instruction in instructions[at:]:
        opcode = instruction.opcode
        if not carried.isdisjoint(instruction.operands):
            if opcode.endswith("-done") or is_end_of_async(instruction, module):
                return False
            if opcode in ("get-tuple-element", "tuple", "bitcast"):
                carried.add(instruction.name)
        if instruction is not start and _computes(instruction):
            return True
    return True


def _computes(instruction: Instruction) -> bool:
    """Return whether an instruction is a kernel that does not communicate."""
    opcode = instruction.opcode
    is_end = opcode.endswith(("-done", "-update", "-start"))
    if is_end or opcode in FREE or opcode in COLLECTIVES or results(instruction) is not None:
        return False
    return instruction.attribute("custom_call_target") not in ANNOTATIONS
