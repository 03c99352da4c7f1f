"""Arrays in the pinned memory of the host. Applies to JAX 0.8 to 0.12.

Private API used: `ShapedArray.memory_space`, which is that of a traced array, and since 0.12
`ShapeDtypeStruct(_memory_space=…)`. In 0.8 to 0.10 a `ShapeDtypeStruct` on the host is lowered as
an array there, but traced with a type of the device, as by JAX itself.
"""

from __future__ import annotations

import inspect
from typing import Any

import jax

PINNED = "pinned_host"
"""The memory kind. XLA compiles arguments of the kind `unpinned_host` as those of the device."""

_HAS_SPACE = "_memory_space" in inspect.signature(jax.ShapeDtypeStruct.__init__).parameters


def is_on_host(value: object) -> bool:
    """Return whether an array, a tracer or a `ShapeDtypeStruct` is in the host's pinned memory."""
    if isinstance(value, jax.core.Tracer):
        return str(getattr(value.aval, "memory_space", "")).endswith("Host")
    if not isinstance(value, jax.Array | jax.ShapeDtypeStruct):
        return False
    return getattr(value.sharding, "memory_kind", None) == PINNED


def placed(struct: Any) -> Any:
    """Return a `ShapeDtypeStruct` in the host's pinned memory, on the same devices."""
    sharding = struct.sharding
    if sharding is None:
        device = jax.local_devices(backend="cpu")[0]
        sharding = jax.sharding.SingleDeviceSharding(device)
    sharding = sharding.with_memory_kind(PINNED)
    if not _HAS_SPACE:
        return struct.update(sharding=sharding)
    return struct.update(sharding=sharding, _memory_space=jax.memory.Space.Host)
