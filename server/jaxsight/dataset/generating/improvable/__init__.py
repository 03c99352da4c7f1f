"""Programs that a rule finds something in and a fix improves, as people write them.

They are the left sides of rewrite pairs. Whether a program has a finding, and whether its fix is
proved, is known only after `jaxsight check` ran on it: a template may be wrong about that.
"""

from __future__ import annotations

import random

from jaxsight.dataset.generating.improvable import kernels, numerics, programs, work
from jaxsight.dataset.generating.registry import Template
from jaxsight.dataset.generating.writer import Writer
from jaxsight.dataset.program import Program
from jaxsight.dataset.spec import Spec

TEMPLATES = tuple(
    Template(write.__name__.replace("_", " "), module.CATEGORY, write)
    for module in (work, numerics, programs, kernels)
    for write in module.TEMPLATES
)
"""Each name begins with the number of the rule that it is written for, such as `jx213`."""


def improvable(seed: int, number: int) -> Program:
    """Return the program `number` of a seed; all templates have the same number of programs."""
    choices = random.Random(f"improvable/{seed}/{number}")
    chosen = TEMPLATES[number % len(TEMPLATES)]
    writer = Writer(Spec(), choices)
    chosen.write(writer)
    return Program(
        number=number,
        text=writer.text(),
        function=writer.function_name(),
        arguments=writer.parameters,
        category=chosen.category,
        template=chosen.name,
        transformations=tuple(sorted(writer.transformations)),
    )
