"""`jax.config` as values to read and write. Public API in all of JAX 0.8 … 0.12."""

from __future__ import annotations

from collections.abc import Callable

import jax

CPU_DEVICES = "jax_num_cpu_devices"
"""Belongs to `devices`: it cannot be changed while a backend lives."""

_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})

# Taken now, since user code may put something else in their place.
_config = jax.config
_update: Callable[[str, object], None] = jax.config.update


def values() -> dict[str, object]:
    """Every option and its value, without the number of CPU devices."""
    found = dict(_config.values)
    found.pop(CPU_DEVICES, None)
    return found


def update(name: str, value: object) -> None:
    """Set one option."""
    _update(name, value)


def from_variable(variable: str, text: str) -> tuple[str, object] | None:
    """The option that JAX would have set on import, had the environment held `variable`; `None`
    when there is none.
    """
    name = variable.lower()
    known = values()
    if name not in known:
        return None
    match known[name]:
        case bool():
            lowered = text.lower()
            if lowered not in _TRUE | _FALSE:
                return None
            return name, lowered in _TRUE
        case int():
            try:
                return name, int(text)
            except ValueError:
                return None
        case _:
            return name, text
