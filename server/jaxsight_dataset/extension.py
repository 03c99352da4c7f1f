"""What the core knows of this package before it is used, see `jaxsight.extensions`."""

from __future__ import annotations

from jaxsight.extensions import Extension

EXTENSION = Extension(
    help="Make datasets of Python functions with their jaxprs, HLO and kernels.",
    group="Data",
)
