"""Programs of a specification, by their numbers."""

from __future__ import annotations

import random

from jaxsight.dataset.generating import templates as families
from jaxsight.dataset.generating.registry import TEMPLATES, of_category
from jaxsight.dataset.generating.writer import Writer
from jaxsight.dataset.program import Program
from jaxsight.dataset.spec import Spec

assert families.MODULES, "templates register themselves when their modules are imported"


def templates() -> dict[str, str]:
    """Return the categories of all templates, by their names."""
    return {name: each.category for name, each in sorted(TEMPLATES.items())}


def generate(spec: Spec, number: int) -> Program:
    """Return the program `number` of a specification."""
    choices = random.Random(f"{spec.digest}/{spec.seed}/{number}")
    category = spec.categories[number % len(spec.categories)]
    candidates = of_category(category)
    chosen = choices.choices(candidates, [each.weight for each in candidates])[0]
    writer = Writer(spec, choices)
    writer.names |= chosen.names
    chosen.write(writer)
    smooth = any(value.is_smooth for value in writer.results) and not writer.is_blocked
    text = writer.text()
    if "stop_gradient" in text:
        writer.labels.add("own-derivative")
    return Program(
        number=number,
        text=text,
        function=writer.function_name(),
        arguments=writer.parameters,
        category=category,
        template=chosen.name,
        transformations=tuple(sorted(writer.transformations)),
        is_differentiable=smooth,
        labels=tuple(sorted(writer.labels)),
    )
