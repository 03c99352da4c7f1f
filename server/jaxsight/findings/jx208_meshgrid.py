"""JX208: a grid of coordinates is stored, though each number of it is known from its index."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import KIB, SHAPED, Reading, size

CODE = "JX208"
LEAST = 64 * KIB
_GRID = SHAPED | {"iota", "convert_element_type", "concatenate", "mul", "add", "sub"}


def find(reading: Reading) -> Iterator[Noticed]:
    """Each kernel that spreads one-dimensional arrays alone, where `meshgrid` is written."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    told: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        steps = [s for path in kernel.equations if (s := reading.flow.steps.get(path)) is not None]
        grids = [step for step in steps if "meshgrid" in reading.quote(step.path)]
        if not grids or kernel.bytes_out < LEAST or not all(s.primitive in _GRID for s in steps):
            continue
        text = reading.quote(grids[0].path)
        if text in told:
            continue
        told.add(text)
        yield Noticed(
            CODE,
            f"{reading.quoted(grids[0].path)} costs kernel {index + 1} of {graph.kernel_count}, which writes {size(kernel.bytes_out)}: "
            "`jnp.indices(…, sparse=True)` or `jax.lax.broadcasted_iota` give the same numbers where they are used.",
            grids[0].path,
        )
