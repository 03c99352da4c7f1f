"""JX208: a grid of coordinates is materialized, though each value follows from its index."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Proof, Rule, Violation
from jaxsight.rules.text.expressions import keyword
from jaxsight.source.text import Edit

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


@RULE.fixes("`arange` instead of `fftfreq`; `sparse=True`", Proof.FEWER)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield frequencies computed from `arange`, which fuse, then `sparse=True`."""
    for call in context.calls("jax.numpy.meshgrid"):
        edits = [edit for array in _sources(context, call) for edit in _counted(context, array)]
        if edits:
            yield Candidate("Compute the frequencies from `arange`", tuple(edits))
        if keyword(call, "sparse") is None:
            yield Candidate("Make the grid sparse", (context.with_keyword(call, "sparse=True"),))
        return


def _sources(context: FixContext, call: ast.Call) -> Iterator[ast.Call]:
    """Yield the calls that compute the grid's axes: arguments, or what names are assigned."""
    function = context.function(call)
    names = {argument.id for argument in call.args if isinstance(argument, ast.Name)}
    yield from (argument for argument in call.args if isinstance(argument, ast.Call))
    for node in ast.walk(function) if function is not None else ():
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as source) if (
                name in names
            ):
                yield source


def _counted(context: FixContext, source: ast.Call) -> Iterator[Edit]:
    """Write `fftfreq(n)` as `((arange(n) + n // 2) % n - n // 2) / n`."""
    if source.keywords or len(source.args) != 1:
        return
    size = context.operand(source.args[0])
    match context.called(source.func):
        case "jax.numpy.fft.fftfreq":
            half = f"{size} // 2"
            text = f"(({context.jnp}.arange({size}) + {half}) % {size} - {half}) / {size}"
        case "jax.numpy.fft.rfftfreq":
            text = f"{context.jnp}.arange({size} // 2 + 1) / {size}"
        case _:
            return
    yield context.replace(source, context.bracketed(source, text))
