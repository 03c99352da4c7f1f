"""Compiles a direction of a program for targets, and describes its kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from jaxsight.compiler.hlo import read
from jaxsight.hlo.text import device_count, parse
from jaxsight.targets.roofline import estimate, total
from jaxsight.targets.target import CPU, Target
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.handlers import lower
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.messages.compiling import ON_DEVICE, SIMULATED, Compiled, Memory
from jaxsight_dataset.program import Record
from jaxsight_dataset.rows.directions import Direction
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.locations import places
from jaxsight_source.compat.staging import open_jaxpr


@dataclass(frozen=True, slots=True)
class Executable:
    """A direction compiled for this machine's CPU."""

    compiled: Any
    stablehlo: str
    unoptimized_hlo: str
    answer: Compiled
    """What the server's compiler would say of it."""

    def __call__(self, arrays: tuple[jax.Array, ...]) -> list[jax.Array]:
        """Run it."""
        leaves: list[jax.Array] = self.compiled.call_flat(arrays)
        return leaves


@dataclass(frozen=True, slots=True)
class _Flat:
    """Calls a compiled function with flat arrays."""

    compiled: Any
    tree: Any

    def call_flat(self, arrays: tuple[jax.Array, ...]) -> list[jax.Array]:
        args, kwargs = jax.tree.unflatten(self.tree, arrays)
        leaves: list[jax.Array] = jax.tree.leaves(self.compiled(*args, **kwargs))
        return leaves


def compile(direction: Direction) -> Executable:
    """Compile a direction for this machine's CPU, without LLVM's optimizations.

    These come after XLA's: the HLO, its kernels and the memory are the same.

    Raise whatever lowering and compiling raise.
    """
    lowered = lowering.located(direction.traced).lower()
    compiled = lowered.compile(compiler_options={"xla_backend_optimization_level": 0})
    hlo = str(compiled.as_text())
    devices = device_count(hlo)
    sizes: Any = compiled.memory_analysis()
    costs: Any = compiled.cost_analysis()
    memory = Memory(
        temporaries=sizes.temp_size_in_bytes,
        arguments=sizes.argument_size_in_bytes,
        outputs=sizes.output_size_in_bytes,
        aliased=sizes.alias_size_in_bytes,
        code=sizes.generated_code_size_in_bytes,
    )
    facts = lower.facts(direction.traced.jaxpr, is_distributed=devices > 1)
    graph = read(
        hlo,
        constants=facts["constants"],
        barriers=facts["barriers"],
        trips=dict(facts["trips"]),
        communicates=facts["communicates"],
    )
    flops = float(costs.get("flops", -1.0)) if isinstance(costs, dict) else -1.0
    how = ON_DEVICE if devices == 1 else SIMULATED
    return Executable(
        _Flat(compiled, compiled.in_tree),
        str(lowered.as_text()),
        str(lowered.as_text("hlo")),
        Compiled(0, CPU, how, graph, memory, hlo, 0.0, flops, devices=devices),
    )


def label(compiled: Compiled, target: Target, hlo: str) -> Record:
    """Return the figures of a compiled program as JSON; sizes in bytes, times in seconds.

    `estimate_seconds` is a roofline estimate, None where it is not known.
    """
    graph, memory, flops = compiled.graph, compiled.memory, compiled.flops
    estimated = total(graph, target)
    return {
        "target": target.name,
        "compiled": compiled.how,
        "devices": compiled.devices,
        "hlo": hlo,
        "kernel_count": graph.kernel_count,
        "launch_count": graph.launch_count,
        "launches_known": graph.launches_known,
        "temp_bytes": memory.temporaries if memory.temporaries >= 0 else None,
        "argument_bytes": memory.arguments if memory.arguments >= 0 else None,
        "output_bytes": memory.outputs if memory.outputs >= 0 else None,
        "flops": flops if flops >= 0 else None,
        "estimate_seconds": estimated.seconds if estimated else None,
        "estimate_is_lower_bound": estimated.is_lower_bound if estimated else None,
        "kernels": [_kernel(kernel, target) for kernel in graph.kernels],
    }


def _kernel(kernel: Kernel, target: Target) -> Record:
    return {
        "name": kernel.name,
        "kind": kernel.kind,
        "what": kernel.title,
        "ends_because": kernel.ends_because,
        "equations": list(kernel.equations),
        "launches": kernel.launches,
        "bytes_in": kernel.bytes_in,
        "bytes_out": kernel.bytes_out,
        "flops": kernel.flops,
        "estimate_seconds": estimate(kernel, target),
    }


def alignment(direction: Direction, file: str, text: str, hlo: str) -> list[Record]:
    """Return where each equation comes from, and what XLA made of it on the CPU.

    Lines are 1-based, columns are in code points from 0. `expression` is the Python expression in
    the program's own module that bound the equation, empty if none did. `instructions` are the
    names of the HLO instructions. The kernels of an equation are those of a label that name its
    `equation`.
    """
    instructions: dict[str, list[str]] = {}
    for computation in parse(hlo).computations():
        for instruction in computation.instructions:
            for path in instruction.equations:
                instructions.setdefault(path, []).append(instruction.name)
    lines = text.split("\n")
    rows: list[Record] = []
    waiting = [(open_jaxpr(direction.traced.jaxpr), "")]
    while waiting:
        opened, prefix = waiting.pop(0)
        for index, equation in enumerate(opened.eqns):
            path = f"{prefix}{index}"
            place = next((place for name, place in places(equation) if name == file), None)
            row: Record = {
                "equation": path,
                "primitive": equation.primitive.name,
                "line": None,
                "column": None,
                "end_line": None,
                "end_column": None,
                "expression": "",
                "instructions": instructions.get(path, []),
            }
            if place is not None:
                row |= _span(lines, place)
            rows.append(row)
            if equation.params:
                inner = inner_jaxprs(equation)
                waiting += [(part.jaxpr, f"{path}/{part.name}/") for part in inner]
    return rows


def _span(lines: list[str], place: tuple[int, int, int, int]) -> Record:
    """Return a place as columns in code points, with its text."""
    first, start, last, end = place
    start = len(lines[first - 1].encode()[:start].decode(errors="ignore"))
    end = len(lines[last - 1].encode()[:end].decode(errors="ignore"))
    rows = lines[first - 1 : last]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    return {
        "line": first,
        "column": start,
        "end_line": last,
        "end_column": end,
        "expression": "\n".join(rows),
    }
