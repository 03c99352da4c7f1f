"""JX205: a cheap intermediate is written to memory for other kernels, which could compute it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_cheap, steps_of
from jaxsight.rules.rule import Rule, Violation
from jaxsight.text.units import MIB, size, some
from jaxsight.wire.kernel_graph import Kernel
from jaxsight.wire.primitives import FUSED, SHAPED
from jaxsight.wire.program import Step

RULE = Rule(__name__, "Cheap intermediate materialized for other kernels.", severity="hint")
LARGE = MIB // 2
"""Bytes from which an intermediate is reported: writing and reading it takes 0.3 µs at 3 TB/s. A
choice: lower reports what a tenth of a launch costs, higher misses what each layer stores."""
_SMALLER, _STEPS = 16, 60
"""How many times smaller what it is computed from is, and by how many equations at most, a choice:
from larger values, or in more steps, it is not cheap to compute for each reader."""
_CHEAP = FUSED - {"div", "rem"}
_SAME = SHAPED | {"convert_element_type"}
"""Primitives whose result is read in place of the intermediate; a copy of it is another one."""
_IN_PLACE = ("scatter", "dynamic_update_slice")
"""Updates in place, for which the buffer has to exist."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find temporaries of cheap elementwise operations that a later kernel could compute itself."""
    graph, flow = view.on_target.graph, view.flow
    for temporary in graph.temporaries:
        if temporary.value.bytes < LARGE or not 0 <= temporary.producer < len(graph.kernels):
            continue
        kernel = graph.kernels[temporary.producer]
        consumers = [graph.kernels[index] for index in set(temporary.consumers)]
        if any(
            (reader.loops, reader.branch, reader.kind) != (kernel.loops, kernel.branch, "fusion")
            or reader.ends_because == "sort"
            or any(step.primitive.startswith(_IN_PLACE) for step in steps_of(flow, reader))
            for reader in consumers
        ):
            continue
        makers = [
            step
            for step in steps_of(flow, kernel)
            if step.primitive in _CHEAP
            and not any(step.path in consumer.equations for consumer in consumers)
            and flow.value(step.results[0]).text == temporary.value.text
        ]
        if not makers or not is_cheap(flow, makers[-1].results[0], _CHEAP, _SMALLER, _STEPS):
            continue
        if not _is_shared(flow, makers[-1], kernel, consumers):
            continue
        readers = [str(index + 1) for index in sorted(set(temporary.consumers))]
        written = makers[-1]
        while written.primitive == "convert_element_type":
            before = flow.producer(written.operands[0])
            if before is None:
                break
            written = before
        yield Violation(
            f"cheap intermediate ({size(temporary.value.bytes)}) is materialized for kernel"
            f"{'s' if readers[1:] else ''} {some(readers, 3, ' and ')}",
            written.path,
            help="recompute it where it is used; wrap its inputs in "
            "`jax.lax.optimization_barrier` to defeat common subexpression elimination",
            notes=(
                f"kernel {temporary.producer + 1} writes {temporary.value.text} to memory",
                "next to nothing has to be read to compute it",
            ),
        )


def _is_shared(flow: Flow, step: Step, kernel: Kernel, readers: Sequence[Kernel]) -> bool:
    """Whether a kernel leaves a value to others that it uses itself, or that several need.

    What one kernel makes for another alone XLA could have fused, and chose not to.
    """
    used, is_read_later = False, False
    for _, user in flow.forwards(step.results[0], _SAME):
        inside = user.path in kernel.equations
        used |= inside
        is_read_later |= not inside or any(user.path in reader.equations for reader in readers)
    return is_read_later and (used or len(readers) > 1)
