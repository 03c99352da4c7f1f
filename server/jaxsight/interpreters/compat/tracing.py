"""Whether code runs under one of JAX's transformations. Applies to JAX 0.8 to 0.12.

Private API used: `core.trace_state_clean`, as no public function says it.
"""

from __future__ import annotations

from jax._src import core


def is_tracing() -> bool:
    """Return whether a transformation traces the code that calls this."""
    return not core.trace_state_clean()
