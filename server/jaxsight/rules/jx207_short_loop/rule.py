"""JX207: a loop of a few rounds whose body is one kernel: unrolled, the rounds fuse into one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Reading
from jaxsight.rules.rule import Rule
from jaxsight.units import size

RULE = Rule(
    "JX207",
    "short-loop",
    "A short loop of one kernel would fuse if it were unrolled.",
    severity="information",
)
SHORT = 8
_LENGTHS = ("shape", "size")


@RULE.finds_in_kernels
def find(reading: Reading) -> Iterator[Noticed]:
    """Each innermost loop of at most eight rounds with one kernel of elementwise work."""
    if reading.compiled is None:
        return
    graph = reading.compiled.graph
    for index, loop in enumerate(graph.loops):
        step = reading.flow.steps.get(loop.equation)
        if loop.trips is None or not 1 < loop.trips <= SHORT or step is None:
            continue
        if step.primitive not in ("scan", "while") or any(
            each.parent == index for each in graph.loops
        ):
            continue
        if not reading.wrote(loop.equation, "fori_loop", "scan", "while_loop", "map"):
            continue
        indices = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
        inside = [graph.kernels[i] for i in indices]
        launches = graph.launches_of(indices)
        work = [kernel for kernel in inside if kernel.bytes_in + kernel.bytes_out > 64]
        if len(work) != 1 or work[0].kind != "fusion" or "update in place" in work[0].what:
            continue  # updates one after the other remain kernels of their own
        if _is_of_a_length(reading, loop.equation):
            continue
        most = "up to " if graph.fewest_of(indices) < launches else ""
        how = "`unroll=True`" if step.primitive == "scan" else "`unroll=`"
        yield Noticed(
            f"{reading.quoted(loop.equation)} goes round {loop.trips} times with one kernel in its body, which reads and writes "
            f"{size(work[0].bytes_in + work[0].bytes_out)} each time: with {how} the rounds fuse, and its {most}{launches} "
            "launches become few.",
            loop.equation,
        )


def _is_of_a_length(reading: Reading, path: str) -> bool:
    """Whether the bounds of a `fori_loop` come from the length of an array, which others call with more."""
    around = reading.around(path)
    call = next((node for node in around if isinstance(node, ast.Call)), None)
    if call is None or "fori_loop" not in ast.unparse(call.func):
        return False
    lengths = {
        target.id
        for node in ast.walk(around[-1])
        if isinstance(node, ast.Assign) and _reads_a_length(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return any(_reads_a_length(bound, lengths) for bound in call.args[:2])


def _reads_a_length(expression: ast.expr, names: Collection[str] = ()) -> bool:
    for node in ast.walk(expression):
        match node:
            case ast.Call(func=ast.Name(id="len")):
                return True
            case ast.Attribute(attr=name) if name in _LENGTHS:
                return True
            case ast.Name(id=name) if name in names:
                return True
    return False
