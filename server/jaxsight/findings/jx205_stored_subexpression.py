"""JX205: what is cheap to compute from little is written to memory for several kernels, and read by each."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import ELEMENTWISE, MIB, SHAPED, Reading, size

CODE = "JX205"
LARGE = MIB // 2
_CHEAP = ELEMENTWISE | SHAPED | {"iota", "concatenate"}


def find(reading: Reading) -> Iterator[Noticed]:
    """Each temporary of two kernels or more that a kernel makes by elementwise operations of small inputs."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    for temporary in graph.temporaries:
        if len(set(temporary.consumers)) < 2 or temporary.value.bytes < LARGE:
            continue
        if not 0 <= temporary.producer < len(graph.kernels):
            continue
        kernel = graph.kernels[temporary.producer]
        steps = [s for path in kernel.equations if (s := reading.flow.steps.get(path)) is not None]
        cheap = steps and all(step.primitive in _CHEAP for step in steps)
        if kernel.kind != "fusion" or not cheap or kernel.bytes_in * 16 > kernel.bytes_out:
            continue
        at = temporary.equation or kernel.ends_at or steps[-1].path
        kernels = ", ".join(str(index + 1) for index in sorted(set(temporary.consumers))[:4])
        yield Noticed(
            CODE,
            f"{reading.quoted(at)} is stored ({temporary.value.text}, {size(temporary.value.bytes)}) by kernel "
            f"{temporary.producer + 1} and read by kernels {kernels}, though it takes {size(kernel.bytes_in)} to compute it: written out at "
            "each use, behind `jax.lax.optimization_barrier` of its inputs, it is computed where it is needed.",
            at,
        )
