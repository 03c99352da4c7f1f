"""What primitives make of integers that something is known of."""

from __future__ import annotations

from collections.abc import Mapping

from jaxsight.rules.program.integers.arithmetic import ARITHMETIC
from jaxsight.rules.program.integers.comparisons import COMPARISONS
from jaxsight.rules.program.integers.known_intervals import TransferFunction
from jaxsight.rules.program.integers.moves import MOVES
from jaxsight.rules.program.integers.reductions import REDUCTIONS

PRIMITIVES: Mapping[str, TransferFunction] = {**ARITHMETIC, **COMPARISONS, **MOVES, **REDUCTIONS}
"""By name of a primitive."""
