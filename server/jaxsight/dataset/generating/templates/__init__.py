"""The templates, a module per group of categories; importing one registers its templates."""

from __future__ import annotations

from jaxsight.dataset.generating.templates import (
    arithmetic,
    arrays,
    control,
    gradients,
    indexing,
    linear,
    reductions,
    vectorization,
)

MODULES = (
    arithmetic,
    arrays,
    control,
    gradients,
    indexing,
    linear,
    reductions,
    vectorization,
)
