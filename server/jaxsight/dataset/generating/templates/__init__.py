"""The templates, a module per group of categories; importing one registers its templates."""

from __future__ import annotations

from jaxsight.dataset.generating.templates import (
    arithmetic,
    arrays,
    blocks,
    control,
    convolutions,
    gradients,
    indexing,
    linear,
    loops,
    pytrees,
    random_numbers,
    reductions,
    rules,
    vectorization,
)
from jaxsight.dataset.generating.templates.composed import helpers, nested
from jaxsight.dataset.generating.templates.uncommon import calls, elements, numeric

MODULES = (
    arithmetic,
    arrays,
    blocks,
    control,
    convolutions,
    gradients,
    indexing,
    linear,
    loops,
    pytrees,
    random_numbers,
    reductions,
    rules,
    vectorization,
    helpers,
    nested,
    calls,
    elements,
    numeric,
)
