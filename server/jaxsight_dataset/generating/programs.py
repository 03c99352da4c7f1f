"""Programs of a specification, by their numbers."""

from __future__ import annotations

import random
import re

from jaxsight_dataset.generating import templates as families
from jaxsight_dataset.generating.choices import Draws
from jaxsight_dataset.generating.expansion import Expansion
from jaxsight_dataset.generating.printing import module
from jaxsight_dataset.generating.snippets import TEMPLATES, Template
from jaxsight_dataset.program import RowProgram
from jaxsight_dataset.spec import Spec

assert families.MODULES, "templates register themselves when their modules are imported"

_TRANSFORMATIONS = re.compile(
    r"jax\.(grad|value_and_grad|jvp|vjp|linearize|hessian|jacfwd|jacrev|vmap|jit|checkpoint"
    r"|custom_jvp|custom_vjp|shard_map)\b"
)

_OWN_DERIVATIVE = ("stop_gradient", "reduce_precision", "bitcast_convert_type")
"""Functions whose derivative in JAX is not that of their values: the identity's, or none."""


def templates() -> dict[str, str]:
    """Return the categories of all templates, by their names."""
    return {name: each.category for name, each in sorted(TEMPLATES.items())}


def generate(spec: Spec, number: int) -> RowProgram:
    """Return the program `number` of a specification."""
    choices = random.Random(f"{spec.digest}/{spec.seed}/{number}")
    category = spec.categories[number % len(spec.categories)]
    candidates = [each for _, each in sorted(TEMPLATES.items()) if each.category == category]
    chosen = choices.choices(candidates, [each.weight for each in candidates])[0]
    return written(chosen, spec, choices, number)


def written(template: Template, spec: Spec, source: random.Random, number: int) -> RowProgram:
    """Return a program of a template."""
    made = Expansion(Draws(spec, source), template)
    text = module(made)
    if any(name in text for name in _OWN_DERIVATIVE):
        made.labels.add("own-derivative")
    return RowProgram(
        number=number,
        text=text,
        function=made.name,
        arguments=made.parameters,
        category=template.category,
        template=template.name,
        transformations=tuple(sorted(set(_TRANSFORMATIONS.findall(text)))),
        is_differentiable=True,
        labels=tuple(sorted(made.labels)),
    )
