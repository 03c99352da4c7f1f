"""JX208: a grid of coordinates is materialized, though each value follows from its index."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.patterns.syntax import SyntaxPatterns
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Proof, Rule, Violation
from jaxsight.rules.text.expressions import keyword

RULE = Rule(
    __name__,
    "Coordinates of `meshgrid` materialized in a separate kernel.",
    severity="information",
    on=False,
)


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find kernels that compute one-dimensional arrays for a `meshgrid` of another kernel."""
    graph, flow = view.on_target.graph, view.flow
    grids = [step for step in flow.steps.values() if "meshgrid(" in view.quote(step.path)]
    above = {
        step.path: grid
        for grid in grids
        for number in grid.operands
        for step in flow.backwards(number, lambda _: True)
    }
    reported: set[str] = set()
    for index, kernel in enumerate(graph.kernels):
        flat = kernel.outputs and all(value.text.count(",") == 0 for value in kernel.outputs)
        paths = [path for path in kernel.equations if path in flow.steps]
        grid = next((above[path] for path in paths if path in above), None)
        if grid is None or not flat or any(path not in above for path in paths):
            continue
        text = view.quote(grid.path)
        if text not in reported:
            reported.add(text)
            yield Violation(
                "`meshgrid` materializes its coordinates in a separate kernel",
                grid.path,
                help="compute the coordinates from `jnp.indices(shape, sparse=True)`",
                notes=(f"kernel {index + 1} of {graph.kernel_count} only computes coordinates",),
            )


# The fix: compute the axes of a grid where they are used.

_COUNTED = (
    ("fftfreq(n)", "((jnp.arange({(n)}) + {(n)} // 2) % {(n)} - {(n)} // 2) / {(n)}"),
    ("rfftfreq(n)", "jnp.arange({(n)} // 2 + 1) / {(n)}"),
)
"""Frequencies, and how they are computed from counters, which fuses."""


@RULE.fixes("`arange` instead of `fftfreq`; `sparse=True`", Proof.FEWER)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield frequencies computed from `arange`, which fuse, then `sparse=True`."""
    patterns = SyntaxPatterns(context)
    for call in context.calls("jax.numpy.meshgrid"):
        edits = [
            context.replace(axis, context.bracketed(axis, patterns.filled(template, found)))
            for axis in dict.fromkeys(map(context.value_of, call.args))
            for pattern, template in _COUNTED
            if (found := patterns.at(axis, pattern)) is not None
        ]
        if edits:
            yield Candidate("Compute the frequencies from `arange`", tuple(edits))
        if keyword(call, "sparse") is None:
            yield Candidate("Make the grid sparse", (context.with_keyword(call, "sparse=True"),))
        return
