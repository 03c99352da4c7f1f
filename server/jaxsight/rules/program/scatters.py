"""Count what a scatter adds up: its updates, and the slots that they go to."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from jaxsight.rules.program.flow import Flow
from jaxsight.wire.program import Step

_AXES = re.compile(r"scatter_dims_to_operand_dims=\(([\d, ]*)\)")


@dataclass(frozen=True, slots=True)
class Scattered:
    """How many rows a scatter writes, and to how many slots: each row has one index."""

    rows: int
    slots: int
    axes: tuple[int, ...]
    """The indexed axes of the array that is written to."""


def scattered(flow: Flow, step: Step) -> Scattered | None:
    """Return what a scatter writes; `None` for other equations."""
    match = _AXES.search(dict(step.parameters).get("dimension_numbers", ""))
    if match is None or len(step.operands) != 3:
        return None
    shape = flow.value(step.operands[0]).shape
    axes = tuple(map(int, re.findall(r"\d+", match[1])))
    rows = math.prod(flow.value(step.operands[1]).shape[:-1])
    return Scattered(rows, math.prod(shape[axis] for axis in axes), axes)
