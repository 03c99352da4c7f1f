"""`jax.config` as values to read and write; public API in JAX 0.8 to 0.12."""

from __future__ import annotations

from collections.abc import Callable

import jax

CPU_DEVICES = "jax_num_cpu_devices"
"""Handled by `devices`, as it cannot be changed while a backend exists."""

# As `bool_env` of jax/_src/config.py reads variables; it raises for any other text.
_TRUE, _FALSE = ("y", "yes", "t", "true", "on", "1"), ("n", "no", "f", "false", "off", "0")
_BOOLEANS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)

# Bound now, as user code may replace them.
_config = jax.config
update: Callable[[str, object], object] = jax.config.update
"""Sets an option."""


def values() -> dict[str, object]:
    """Return every option with its value, except the number of CPU devices."""
    options = dict(_config.values)
    options.pop(CPU_DEVICES, None)
    return options


def from_variable(variable: str, text: str) -> tuple[str, object] | None:
    """Return the option that JAX would have set from an environment variable on import, if any."""
    name = variable.lower()
    options = values()
    if name not in options:
        return None
    match options[name]:
        # Before `int()`, which matches a `bool` too.
        case bool():
            value = _BOOLEANS.get(text.lower())
            return None if value is None else (name, value)
        case int():
            try:
                return name, int(text)
            except ValueError:
                return None
        case _:
            return name, text
