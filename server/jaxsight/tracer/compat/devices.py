"""How many CPU devices this process plays, which JAX allows to say only before its backend exists.

A program may ask for eight of them on its first line, while the file traced before it wanted one.
So the backend is let go of and made anew; arrays that live on the old one are of no use afterwards,
which callers must heed. `jax._src.xla_bridge.backends_are_initialized` holds for JAX 0.8 … 0.12;
the rest is public.
"""

from __future__ import annotations

import re

import jax
from jax._src import xla_bridge

from jaxsight.tracer.compat import config

UNSET = -1

_FORCED = re.compile(r"--?xla_force_host_platform_device_count=(\d+)")
_MENTIONS = re.compile(rf"xla_force_host_platform_device_count|{config.CPU_DEVICES}")


def mentioned(text: str) -> bool:
    """Whether running this source may set the number of devices."""
    return _MENTIONS.search(text) is not None


def reset() -> bool:
    """Let go of the backend and of any number asked for; answers whether arrays made before are
    lost.
    """
    lost = xla_bridge.backends_are_initialized()
    if lost:
        from jax.extend import backend  # 50 ms, for what few programs ask

        backend.clear_backends()  # type: ignore[no-untyped-call]
    if jax.config.values[config.CPU_DEVICES] != UNSET:
        config.update(config.CPU_DEVICES, UNSET)
    return lost


def heed_flags(flags: str) -> None:
    """Have as many devices as `XLA_FLAGS` says.

    XLA reads the variable once in a process, JAX's option each time.
    """
    asked = _FORCED.findall(flags)
    if asked and not xla_bridge.backends_are_initialized():
        config.update(config.CPU_DEVICES, int(asked[-1]))
