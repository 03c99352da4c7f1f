"""JX207: a loop of a few iterations runs a single kernel; unrolled, the iterations would fuse."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.loops import COUNTER
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import STORED, Proof, Rule, Violation
from jaxsight.rules.text.expressions import keyword
from jaxsight.text.units import size
from jaxsight.wire.primitives import LOOPS

RULE = Rule(
    __name__, "Short loop of a single kernel would fuse if unrolled.", severity="information"
)
SHORT = 8
"""Iterations up to which unrolling is advised, which multiplies the program by their number. A
choice: more compile for longer than the saved launches, 3 µs each, take in thousands of runs."""
_LENGTHS = ("shape", "size")
_FUNCTIONS = ("fori_loop", "scan", "while_loop", "map")
_LOOP = re.compile(rf"\b({'|'.join(_FUNCTIONS)})\(")
_FUSE = "to fuse the iterations into one kernel"
_HELP = {
    "map": f"use `jax.vmap`, or `jax.lax.scan` with `unroll=True` {_FUSE}",
    "while_loop": f"use `jax.lax.fori_loop` or `jax.lax.scan` with `unroll=True` {_FUSE}",
}
"""By function: those that cannot be unrolled."""
_OVERHEAD = "the launches include kernels of the loop itself, such as its counter"
_DYNAMIC = f"give the loop bounds as Python integers, and pass `unroll=True` {_FUSE}"
"""For a `fori_loop` with traced bounds, a `while` of the program: `unroll` needs static ones."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find innermost loops of two to eight iterations with one kernel of elementwise work."""
    graph = view.on_target.graph
    for index, loop in enumerate(graph.loops):
        step = view.flow.steps.get(loop.equation)
        if loop.trips is None or not 1 < loop.trips <= SHORT or step is None:
            continue
        is_outer = any(inner.parent == index for inner in graph.loops)
        if step.primitive not in LOOPS or is_outer or not view.wrote(loop.equation, *_FUNCTIONS):
            continue
        indices = [i for i, kernel in enumerate(graph.kernels) if index in kernel.loops]
        launches = graph.launches_of(indices)
        inside = map(graph.kernels.__getitem__, indices)
        work = [kernel for kernel in inside if kernel.bytes_in + kernel.bytes_out > COUNTER]
        if len(work) != 1 or work[0].kind != "fusion" or "update in place" in work[0].title:
            continue  # consecutive updates in place do not fuse
        if _is_of_a_length(view, loop.equation):
            continue
        most = "up to " if graph.fewest_of(indices) < launches else ""
        match = _LOOP.search(view.quote(loop.equation))
        name = match[1] if match else "loop"
        unrolled = f"pass `unroll=True` {_FUSE}" if step.primitive == "scan" else _DYNAMIC
        moved = work[0].bytes_in + work[0].bytes_out
        yield Violation(
            f"`{name}` runs {loop.trips} iterations of one kernel ({most}{launches} launches)",
            loop.equation,
            help=_HELP.get(name, unrolled),
            notes=(
                f"each iteration reads and writes {size(moved)}",
                *((_OVERHEAD,) if launches > loop.trips else ()),
            ),
        )


def _is_of_a_length(view: ProgramView, path: str) -> bool:
    """Whether the bounds of a `fori_loop` come from an array's length, which may be larger."""
    around = view.around(path)
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


# The fix: unroll a short loop.


# Fewer kernels, for larger temporaries.
@RULE.fixes("`unroll=True` for the loop", Proof.FEWER, trades=frozenset({STORED}))
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `unroll=True` for the loop, instead of a number that is given."""
    for call in context.calls("jax.lax.fori_loop", "jax.lax.scan"):
        argument = keyword(call, "unroll")
        if argument is None:
            edit = context.with_keyword(call, "unroll=True")
        elif isinstance(argument, ast.Constant):
            edit = context.replace(argument, "True")
        else:
            return  # the caller decides
        yield Candidate("Unroll the loop", (edit,))
        return
