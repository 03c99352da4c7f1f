"""The process that code sees, as if it were one of a job with several: its number and its devices.

JAX executes in this process alone, so its own code gets the true answers; see `fake_devices.py`,
which tells who asks. The devices are divided among the processes in order, as on machines with
equal ones. What was replaced stays so for the rest of this process.

Private API used, in JAX 0.8 to 0.12: `jaxlib._jax.Device.process_index`, which is replaced by a
property of the same name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
from jaxlib import _jax

from jaxsight.tracer.compat import fake_devices
from jaxsight.wire.messages.requests import FakeProcess

_shown: FakeProcess | None = None


def watch() -> None:
    """Replace what answers, once; until `see` is called, the answers stay the true ones."""
    for name, answer in _ANSWERS.items():
        if hasattr(jax, name):
            setattr(jax, name, _answering(getattr(jax, name), answer))
    # Keep the descriptor, to read it for each device.
    original = vars(_jax.Device)["process_index"]

    def index(self: jax.Device) -> int:
        if _shown is None or not fake_devices.is_called_by_program():
            return int(original.__get__(self))
        every = jax.devices()
        # The device may belong to another backend than the default one.
        return _owner(every.index(self), len(every)) if self in every else 0

    _jax.Device.process_index = property(index)


def see(process: FakeProcess | None) -> None:
    """Let code see a process from now on; `None` changes nothing."""
    global _shown
    _shown = process or _shown


def _answering(
    original: Callable[..., object], answer: Callable[..., object]
) -> Callable[..., object]:
    """Return a function that answers programs and libraries by `answer`, and JAX as before."""

    @functools.wraps(original)
    def answering(*args: object, **kwargs: object) -> object:
        if _shown is None or not fake_devices.is_called_by_program():
            return original(*args, **kwargs)
        return answer(_shown, *args, **kwargs)

    return answering


def _local_devices(
    process: FakeProcess, process_index: int | None = None, backend: str | None = None, **_: object
) -> list[jax.Device]:
    index = process.index if process_index is None else process_index
    devices = jax.devices(backend)
    return [device for at, device in enumerate(devices) if _owner(at, len(devices)) == index]


def _local_device_count(process: FakeProcess, backend: str | None = None) -> int:
    return len(_local_devices(process, backend=backend))


_ANSWERS: dict[str, Callable[..., object]] = {
    **dict.fromkeys(("process_index", "host_id"), lambda process, *_, **__: process.index),
    **dict.fromkeys(("process_count", "host_count"), lambda process, *_, **__: process.count),
    **dict.fromkeys(
        ("process_indices", "host_ids"), lambda process, *_, **__: [*range(process.count)]
    ),
    "local_devices": _local_devices,
    "local_device_count": _local_device_count,
}


def _owner(at: int, count: int) -> int:
    """Return the process of a device, by its position among all devices."""
    assert _shown is not None
    return at * _shown.count // count
