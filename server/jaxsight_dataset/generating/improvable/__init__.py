"""Programs that a rule finds something in and a fix improves, as people write them.

They are the left sides of rewrite pairs. Whether a program has a finding, and whether its fix is
proved, is known only after `jaxsight check` ran on it: a template may be wrong about that.
"""

from __future__ import annotations

import random

from jaxsight_dataset.generating.improvable import numerics, work
from jaxsight_dataset.generating.programs import written
from jaxsight_dataset.generating.snippets import IMPROVABLE
from jaxsight_dataset.program import Program
from jaxsight_dataset.spec import Spec

MODULES = (numerics, work)
TEMPLATES = tuple(IMPROVABLE.values())


def improvable(seed: int, number: int) -> Program:
    """Return the program `number` of a seed; all templates have the same number of programs."""
    choices = random.Random(f"improvable/{seed}/{number}")
    return written(TEMPLATES[number % len(TEMPLATES)], Spec(), choices, number)
