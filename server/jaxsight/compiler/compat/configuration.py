"""How JAX is configured where a compiler runs.

This applies to JAX 0.8 to 0.12, whose options have the same defaults (`jax/_src/config.py`) and
are set by environment variables named `JAX_…`: a compiler runs no code that could set them.
"""

from __future__ import annotations

import os

from jaxlib import version

_UNKNOWN = (0, 13)
"""The first version whose defaults are not known here."""

_OF_TRACING = frozenset({"JAX_ENABLE_X64", "JAX_TRACEBACK_FILTERING"})
"""Variables that have no effect on a compile."""


def is_default() -> bool:
    """Return whether JAX would compile for the CPU as it does by default, in a known version."""
    configured = {name for name, value in os.environ.items() if name.startswith("JAX_") and value}
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        configured.discard("JAX_PLATFORMS")
    known = tuple(version.__version_info__)[:2] < _UNKNOWN
    return known and configured <= _OF_TRACING
