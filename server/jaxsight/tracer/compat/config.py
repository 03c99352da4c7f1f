"""`jax.config` as values to read and write; public API in JAX 0.8 to 0.12."""

from __future__ import annotations

from collections.abc import Callable

import jax

CPU_DEVICES = "jax_num_cpu_devices"
"""Handled by `devices`, as it cannot be changed while a backend exists."""

# As `bool_env` of jax/_src/config.py reads variables; it raises for any other text.
_TRUE = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE = frozenset({"n", "no", "f", "false", "off", "0"})

# Bound now, as user code may replace them.
_config = jax.config
_update: Callable[[str, object], None] = jax.config.update


def values() -> dict[str, object]:
    """Return every option with its value, except the number of CPU devices."""
    options = dict(_config.values)
    options.pop(CPU_DEVICES, None)
    return options


def update(name: str, value: object) -> None:
    """Set an option."""
    _update(name, value)


def from_variable(variable: str, text: str) -> tuple[str, object] | None:
    """Return the option that JAX would have set from an environment variable on import, if any."""
    name = variable.lower()
    options = values()
    if name not in options:
        return None
    match options[name]:
        # Before `int()`, which matches a `bool` too.
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
