"""The number of simulated CPU devices, which JAX allows to set only before the backend exists.

A program may request eight devices on its first line, after another file was traced with one.
What a program needs without a request is in `jaxsight.tracer.execution.device_demand`.
Then the backend is deleted and created again; arrays on the old one are invalid afterwards, which
callers must handle.
`jax._src.xla_bridge.backends_are_initialized` exists in JAX 0.8 to 0.12; the rest is public API.
"""

from __future__ import annotations

import os
import re

import jax
from jax._src import xla_bridge

from jaxsight.tracer.compat import config

_FORCED = re.compile(r"--?xla_force_host_platform_device_count=(\d+)")
_MENTIONS = re.compile(rf"xla_force_host_platform_device_count|{config.CPU_DEVICES}")


_FLAGS_AT_START = os.environ.get("XLA_FLAGS", "")
_OPTION_AT_START = jax.config.values[config.CPU_DEVICES]
"""The option's value before user code runs: -1, or that of the environment."""

_target = 0
"""The number of devices of the target, which user code cannot change; 0 if it may."""


def mentioned(text: str) -> bool:
    """Return whether running this source may set the number of devices."""
    return _MENTIONS.search(text) is not None


def count_at_start() -> int:
    """Return the number of simulated devices that the user's environment sets; 1 by default."""
    forced = _FORCED.findall(_FLAGS_AT_START)
    option = int(_OPTION_AT_START)
    return option if option > 0 else int(forced[-1]) if forced else 1


def simulated() -> int | None:
    """Return the number of simulated devices; `None` if the devices are not simulated."""
    return jax.device_count() if jax.default_backend() == "cpu" else None


def are_targets() -> bool:
    """Return whether the number of devices is that of the target."""
    return _target > 0


def are_several() -> bool:
    """Return whether there are several devices, or will be, without initializing any."""
    if xla_bridge.backends_are_initialized():
        return jax.device_count() > 1
    option = int(jax.config.values[config.CPU_DEVICES])
    return (option if option > 0 else count_at_start()) > 1


def reset(count: int | None = None, *, target: bool = False) -> bool:
    """Delete the backend, and set the number of devices; return whether this invalidated arrays.

    Args:
        count: the number of devices of the next backend; by default, that of the environment.
        target: whether it is the target's, so that user code does not change it.
    """
    global _target
    _target = count if target and count is not None else 0
    lost = xla_bridge.backends_are_initialized()
    if lost:
        from jax.extend import backend  # takes 50 ms, and few programs need it

        backend.clear_backends()  # type: ignore[no-untyped-call]
    # After the deletion: JAX raises if the option is changed while a backend exists.
    value = _OPTION_AT_START if count is None else count
    if jax.config.values[config.CPU_DEVICES] != value:
        config.update(config.CPU_DEVICES, value)
    return lost


def heed_flags(flags: str) -> None:
    """Set the number of devices from `XLA_FLAGS`.

    XLA reads the variable once per process, but JAX's option each time.
    """
    counts = _FORCED.findall(flags)
    if counts and not _target and not xla_bridge.backends_are_initialized():
        config.update(config.CPU_DEVICES, int(counts[-1]))


def hold() -> bool:
    """Undo that user code set the number of devices, if it is the target's.

    Return whether there are as many as the target has, also if no backend exists yet.
    """
    if not _target or jax.config.values[config.CPU_DEVICES] == _target:
        return True
    if xla_bridge.backends_are_initialized():
        return simulated() in (None, _target)
    config.update(config.CPU_DEVICES, _target)
    return True
