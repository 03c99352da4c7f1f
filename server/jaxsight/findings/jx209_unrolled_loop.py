"""JX209: a Python loop was traced round by round, and its body stands in the program many times."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading
from jaxsight.tracer.program import Step

CODE = "JX209"
MANY = 16
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)


def find(reading: Reading) -> Iterator[Noticed]:
    """Each loop of Python's whose body made the same equations sixteen times or more."""
    flow = reading.flow
    copies: dict[tuple[object, ...], list[Step]] = defaultdict(list)
    for step in flow.steps.values():
        if step.span is not None and step.results:
            kind = step.span, step.primitive, step.parameters, flow.value(step.results[0]).text
            copies[kind].append(step)
    loops: dict[tuple[int, int], tuple[str, int, int]] = {}
    for steps in copies.values():
        if len(steps) < MANY or len({step.path.rpartition("/")[0] for step in steps}) > 1:
            continue
        loop = next((n for n in reading.around(steps[0].path) if isinstance(n, _LOOPS)), None)
        if loop is None:
            continue
        at = loop.lineno, loop.col_offset
        first, rounds, count = loops.get(at, (steps[0].path, len(steps), 0))
        loops[at] = (first, min(rounds, len(steps)), count + len(steps))
    for first, rounds, count in loops.values():
        yield Noticed(
            CODE,
            f"This Python loop was unrolled: {rounds} rounds made {count} equations, each traced, lowered and compiled. "
            "`jax.lax.fori_loop` or `jax.lax.scan` compile the body once.",
            first,
        )
