"""JX209: a Python loop was traced round by round, and its body stands in the program many times."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import ELEMENTWISE, SHAPED, Reading
from jaxsight.tracer.program import Step

CODE = "JX209"
MANY = 16
FUSED = 1024
"""Equations of rounds that fuse into one kernel, from which on they are too many: fewer cost little, and a loop would launch a kernel for each round."""
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
_FUSES = ELEMENTWISE | SHAPED | {"iota", "concatenate", "pad"}


def find(reading: Reading) -> Iterator[Noticed]:
    """Each loop of Python's whose body made the same equations sixteen times or more."""
    flow = reading.flow
    by_place: dict[object, list[Step]] = defaultdict(list)
    for step in flow.steps.values():
        if step.span is not None and step.results:
            inside = flow.parent.get(step.path)
            by_place[step.span, inside.path if inside is not None else ""].append(step)
    loops: dict[tuple[int, int], list[list[Step]]] = defaultdict(list)
    for steps in by_place.values():
        if len(steps) < MANY:
            continue
        loop = next((n for n in reading.around(steps[0].path) if isinstance(n, _LOOPS)), None)
        if loop is not None:
            loops[loop.lineno, loop.col_offset].append(steps)
    for places in loops.values():
        places = [steps for steps in places if _rounds(steps) >= MANY]
        if not places:
            continue
        rounds = min(map(_rounds, places))
        count = sum(map(len, places))
        fuses = all(step.primitive in _FUSES for steps in places for step in steps)
        if fuses and count < FUSED:
            continue
        yield Noticed(
            CODE,
            f"This Python loop was unrolled: {rounds} rounds made {count} equations, each traced, lowered and compiled. "
            "`jax.lax.fori_loop` or `jax.lax.scan` compile the body once.",
            places[0][0].path,
        )


def _rounds(steps: Sequence[Step]) -> int:
    """How often one expression was evaluated: each time it makes each of its equations once or more. What it made once alone is of a first or a last round."""
    counts = Counter(step.primitive for step in steps)
    return min((count for count in counts.values() if count > 1), default=0)
