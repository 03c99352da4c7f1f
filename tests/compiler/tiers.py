"""Compare both tiers of a compile: `python -m tests.compiler.tiers [NAME…]`.

A program is compiled to its schedule, and completely: everything but memory must be the same. The
programs are those of the sourcerizer's tests (`tests/jaxsight_source`: JAX's own functions, and those
of libraries), and the gradients of those that have one.
"""

from __future__ import annotations

import base64
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight.compiler.answer import answer
from jaxsight.tracer.compat import lowering
from jaxsight.tracer.handlers.lower import facts
from jaxsight.wire.kernel_graph import Graph
from jaxsight.wire.messages.compiling import Compile, Compiled, NotCompiled
from tests.corpora.jaxsight_source.libraries import FUNCTIONS
from tests.corpora.jaxsight_source.programs.registry import Call, all_programs

_FIELDS = tuple(Graph.__dataclass_fields__)


def differences(early: Compiled, complete: Compiled) -> list[str]:
    """Return what an early answer says differently from a complete one."""
    first, second = _without_lines(early.graph), _without_lines(complete.graph)
    graphs = [
        f"{name}: {getattr(first, name)} instead of {getattr(second, name)}"[:400]
        for name in _FIELDS
        if getattr(first, name) != getattr(second, name)
    ]
    lines = early.hlo.split("\n")
    graphs += [
        f"line {kernel.instruction} of the HLO is not that of {kernel.name}"
        for kernel in early.graph.kernels
        if kernel.name not in lines[kernel.instruction]
    ]
    figures = ("how", "flops", "aliases", "notes", "platform", "jaxlib")
    return graphs + [
        f"{name}: {getattr(early, name)} instead of {getattr(complete, name)}"
        for name in figures
        if getattr(early, name) != getattr(complete, name)
    ]


_CRASHES_XLA = ("a_chain_of_a_hundred_thousand_equations",)


def _without_lines(graph: Graph) -> Graph:
    """Return a graph without lines of HLO, as tables of stack frames differ in length."""
    return replace(graph, kernels=tuple(replace(k, instruction=0) for k in graph.kernels))


def _calls() -> Iterator[tuple[str, Callable[[], Call]]]:
    for program in all_programs():
        if program.devices == 1 and False in program.x64 and program.name not in _CRASHES_XLA:
            yield program.name, program.make
    for name, function in FUNCTIONS.items():
        yield name, function.make


def _gradient(call: Call) -> Call:
    """Return the gradient of the sum of a function's floating-point results."""

    def total(*args: Any) -> Any:
        leaves = jax.tree.leaves(call.function(*args, **call.kwargs))
        return sum(jnp.sum(x) for x in leaves if jnp.issubdtype(x.dtype, jnp.floating))

    return Call(jax.grad(total), call.args, {})


def _request(call: Call) -> Compile:
    def function(*args: Any) -> Any:
        return call.function(*args, **call.kwargs)

    traced = jax.jit(function).trace(*call.args)
    artifact = lowering.artifact(traced, "cpu", "")
    program = base64.b64encode(artifact.bytes).decode()
    return Compile(1, "cpu", program, complete=False, **facts(traced.jaxpr, is_distributed=False))


def _compare(call: Call) -> tuple[str, float, float]:
    """Return how the tiers of a function differ, and the seconds that each takes.

    Raises:
        ValueError: it cannot be compiled.
    """
    request = _request(call)
    early = answer(request)
    complete = answer(
        Compile(
            1,
            "cpu",
            request.program,
            constants=request.constants,
            barriers=request.barriers,
            trips=request.trips,
        )
    )
    if isinstance(early, NotCompiled) or isinstance(complete, NotCompiled):
        raise ValueError(early.message if isinstance(early, NotCompiled) else "only completely")  # noqa: TRY004
    if early.is_complete:
        raise ValueError("the compile did not end at the schedule")
    temporaries = complete.temporaries
    bound = 2 * sum(kernel.bytes_out for kernel in complete.graph.kernels)
    told = differences(early, complete)
    if temporaries > max(bound, 64 * 2**20):
        told.append(f"{temporaries} bytes of temporaries, at most {bound} expected")
    return "; ".join(told), early.seconds, complete.seconds


def main() -> None:
    """Compare, print the differences, and exit with 1 when there are some."""
    warnings.simplefilter("ignore")
    wanted = sys.argv[1:]
    compared = different = 0
    ratios: list[float] = []
    for name, make in _calls():
        if wanted and name not in wanted:
            continue
        for kind in ("value", "gradient"):
            try:
                call = make() if kind == "value" else _gradient(make())
                words, early, complete = _compare(call)
            except Exception as error:  # noqa: BLE001 - without a gradient, or refused
                if kind == "value":
                    print(f"{name}: {type(error).__name__}: {str(error)[:100]}", flush=True)
                break
            compared += 1
            different += bool(words)
            ratios.append(early / complete)
            if words:
                print(f"{name} ({kind}): {words}", flush=True)
    ratios.sort()
    print(f"{compared} programs, {different} differ, median {ratios[len(ratios) // 2]:.3f}x")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
