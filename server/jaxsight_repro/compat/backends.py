"""Whether this process uses a device yet: after that, it must not fork.

Applies to JAX 0.8 to 0.12. Private API used: `xla_bridge.backends_are_initialized`, as the public
functions initialize backends.
"""

from __future__ import annotations

from jax._src import xla_bridge


def are_initialized() -> bool:
    """Return whether a backend was initialized in this process."""
    return bool(xla_bridge.backends_are_initialized())
