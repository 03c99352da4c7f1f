"""JX208: a grid of coordinates is stored, though each number of it is known from its index."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule

RULE = Rule(
    "JX208",
    "meshgrid",
    "A grid is stored that could be computed where it is used.",
    severity="information",
    on=False,
)


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each kernel that makes one-dimensional arrays for a `meshgrid` of another kernel."""
    if reading.compiled is None:
        return
    graph, flow = reading.compiled.graph, reading.flow
    grids = [step for step in flow.steps.values() if "meshgrid(" in reading.quote(step.path)]
    above = {
        step.path: grid
        for grid in grids
        for number in grid.operands
        for step in flow.above(number, lambda each: True)
    }
    told: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        flat = kernel.outputs and all(value.text.count(",") == 0 for value in kernel.outputs)
        paths = [path for path in kernel.equations if path in flow.steps]
        grid = next((above[path] for path in paths if path in above), None)
        if grid is None or not flat or any(path not in above for path in paths):
            continue
        text = reading.quote(grid.path)
        if text not in told:
            told.add(text)
            yield Noticed(
                f"{reading.quoted(grid.path)} costs kernel {index + 1} of {graph.kernel_count}, which makes the coordinates: computed from "
                "`jnp.indices(shape, sparse=True)` they are made where they are used.",
                grid.path,
            )
