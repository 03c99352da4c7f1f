"""What a device did in a profile: its kernels, copies and clears, with their times."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_AROUND = ("while", "conditional", "call")
"""Instructions whose events on a CPU last as long as those inside of them."""
_LINES = {"gpu": "Stream", "tpu": "XLA Ops"}
"""How the lines with a device's events begin, in its plane `/device:GPU:0` or `/device:TPU:0`."""


@dataclass(slots=True)
class Events:
    """Events of a device by name: how many, and their nanoseconds."""

    counts: Counter[str] = field(default_factory=Counter)
    durations: Counter[str] = field(default_factory=Counter)


def profiled(platform: str, run: Callable[[], object]) -> Events:
    """Return what the device does while a function runs.

    Args:
        platform: JAX's platform of the device: `gpu`, `tpu` or `cpu`.
        run: it has to wait until the device is done.
    """
    import jax

    with tempfile.TemporaryDirectory(prefix="jaxsight-profile-") as folder:
        with jax.profiler.trace(folder):
            run()
        [file] = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(file))
    events = Events()
    for event in _of_device(data, platform):
        events.counts[event.name] += 1
        events.durations[event.name] += event.duration_ns
    return events


def _of_device(data: Any, platform: str) -> Iterator[Any]:
    """Yield a device's events; on CPUs, those that name an instruction of the HLO."""
    for plane in data.planes:
        if platform == "cpu":
            for line in plane.lines:
                for event in line.events:
                    is_around = event.name.partition(".")[0] in _AROUND
                    if "hlo_op" in dict(event.stats) and not is_around:
                        yield event
        elif plane.name.startswith(f"/device:{platform.upper()}:"):
            for line in plane.lines:
                if line.name.startswith(_LINES[platform]):
                    yield from line.events
