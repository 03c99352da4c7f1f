"""How many CPU devices this process plays, which JAX allows to say only before its backend exists.

A program may ask for eight of them on its first line, while the file traced before it wanted one. So the backend is
let go of and made anew; arrays that live on the old one are of no use afterwards, which callers must heed.
`jax._src.xla_bridge.backends_are_initialized` holds for JAX 0.8 … 0.12; the rest is public.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import jax
from jax._src import xla_bridge
from jax.extend import backend

from jaxsight.tracer.compat import config
from jaxsight.tracer.protocol import Chunk

UNSET = -1

_FORCED = re.compile(r"--?xla_force_host_platform_device_count=(\d+)")
_MENTIONS = re.compile(rf"xla_force_host_platform_device_count|{config.CPU_DEVICES}")


def mentioned(chunks: Iterable[Chunk]) -> bool:
    """Whether one of the chunks may set the number of devices."""
    return any(_MENTIONS.search(chunk.text) for chunk in chunks)


def forced(flags: str) -> int | None:
    """The number of devices that `XLA_FLAGS` asks for."""
    found = _FORCED.findall(flags)
    return int(found[-1]) if found else None


def count() -> int:
    """The number asked for; `UNSET` when nobody asked."""
    asked: int = jax.config.jax_num_cpu_devices
    return asked


def release() -> bool:
    """Let go of the backend, so that the number can be set; answers whether there was one."""
    if not xla_bridge.backends_are_initialized():
        return False
    backend.clear_backends()
    return True


def play(number: int) -> bool:
    """Have `number` devices from now on; answers whether arrays made before are lost."""
    if number == count():
        return False
    lost = release()
    config.update(config.CPU_DEVICES, number)
    return lost
