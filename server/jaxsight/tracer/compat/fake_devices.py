"""Devices as the target has them: what JAX's devices, and functions that name them, answer.

Code runs on the CPU, and sees the target's platform: `jax.default_backend()` is `gpu` for an H100.
Whoever asks decides the answer. JAX executes on the CPU's devices, so its own code gets the true
one; programs, libraries, and the parts of JAX that choose what is traced (`_CHOOSES`) get that of
the target.

All ways to ask end at attributes of jaxlib's classes `Device` and `Client`, or at functions of
`jax._src.xla_bridge` that take a platform's name. Both are replaced once, for the whole process.

Private API used, in JAX 0.8 to 0.12: `xla_bridge.get_backend` and `backends`, which `jax.devices`
and `jax.extend.backend` call by their names in the module, `array.ArrayImpl`,
`backends_are_initialized`, and the files of `_PASSES`, `_CHOOSES`.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import jax
import jaxlib
from jax._src import array, xla_bridge
from jaxlib import _jax

from jaxsight.text.names import words
from jaxsight.tracer.compat import config, replacing
from jaxsight.tracer.isolation import code_origins
from jaxsight.wire.messages.requests import FakeDevice
from jaxsight_source.files.ours import OURS

_JAX = f"{Path(jax.__file__).parent}{os.sep}"
_JAXLIB = f"{Path(jaxlib.__file__).parent}{os.sep}"

_HAND_ON = f"compat{os.sep}fake_processes.py"
"""Our own functions that a program calls in place of JAX's."""
_PASSES = ("_src/xla_bridge.py", "_src/util.py", "extend/backend.py", "lib/")
"""Files of JAX whose functions hand the question on: `jax.default_backend`, caches."""
_CHOOSES = words(
    """_src/cudnn/ _src/nn/ _src/pallas/mosaic/core.py _src/pallas/mosaic/pipeline.py
    _src/pallas/mosaic/sc_core.py _src/pallas/mosaic/tpu_info.py _src/random _src/tpu_info.py
    example_libraries/ experimental/pallas/ops/ nn/"""
)
"""Files of JAX whose choice is part of the program: `random.gamma` has other derivatives on CPUs,
cuDNN's attention and Pallas kernels ask for the chip.
"""

_PLATFORMS_AT_START = jax.config.values["jax_platforms"]
"""What the user's environment selects, or `cpu`."""
_REPR = {"cuda": "CudaDevice", "rocm": "RocmDevice", "tpu": "TpuDevice"}
"""Classes of devices in `repr`, as jaxlib and libtpu write them."""
_UNNAMED = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU", "tpu": "TPU"}
"""What stands for the kind of an unknown chip."""
_UNKNOWN_ATTRIBUTES = {
    "gpu": ("compute_capability", "core_count", "slice_index"),
    "tpu": ("coords", "core_on_chip", "num_cores", "slice_index"),
}
"""Attributes that devices of a platform have and CPUs do not."""

Asked = Callable[[FrameType, str], None]
"""Called with the frame that asks and, if it does not get the target's answer, a clause about it;
it may raise an exception.
"""


class _Sight:
    """What code sees now."""

    device: FakeDevice | None = None
    asked: Asked = staticmethod(lambda frame, unknown: None)
    hidden = 0
    replaced: contextlib.ExitStack | None = None
    """Undoes what was replaced."""


_sight = _Sight()


def see(device: FakeDevice | None) -> None:
    """Let code see another device from now on; `None` is the CPU."""
    _sight.device = device


def watch(asked: Asked) -> None:
    """Have a function called whenever a program or a library asks for the platform, from now on."""
    _install()
    _sight.asked = asked


@contextlib.contextmanager
def seeing(device: FakeDevice | None, asked: Asked) -> Iterator[None]:
    """Let code see a device in this block only; nothing stays replaced after it."""
    before = _sight.device, _sight.asked
    own = _install()
    _sight.device, _sight.asked = device, asked
    try:
        yield
    finally:
        _sight.device, _sight.asked = before
        if own is not None:
            own.close()
            _sight.replaced = None


@contextlib.contextmanager
def hidden() -> Iterator[None]:
    """Let all code see the CPU in this block, and call nobody."""
    _sight.hidden += 1
    try:
        yield
    finally:
        _sight.hidden -= 1


def _install() -> contextlib.ExitStack | None:
    """Replace what answers questions about the platform; return what undoes it.

    Return `None` if that has been done.
    """
    if _sight.replaced is not None:
        return None
    _sight.replaced = contextlib.ExitStack()
    for kind in (_jax.Device, _jax.Client):
        _answer(kind, "platform", lambda device, _: device.family)
    _answer(_jax.Device, "__repr__", _written, is_method=True)
    _answer(_jax.Device, "__str__", _text, is_method=True)
    _answer(_jax.Client, "_raw_platform", lambda device, _: device.platform)
    _answer(_jax.Client, "platform_version", _version)
    _answer(_jax.Device, "device_kind", _kind)
    for name in sorted({name for names in _UNKNOWN_ATTRIBUTES.values() for name in names}):
        _answer(_jax.Device, name, functools.partial(_attribute, name))
    memory = _Unknown("reads `memory_stats()`: they are the CPU's here")
    _answer(_jax.Device, "memory_stats", lambda device, _: memory, is_method=True)
    _answer(array.ArrayImpl, "platform", lambda device, _: device.family, is_method=True)
    _name_backends()
    return _sight.replaced


def _replace(holder: object, name: str, value: object) -> None:
    assert _sight.replaced is not None
    replacing.replace(_sight.replaced, holder, name, value)


@functools.cache
def _role(path: str) -> Literal["asks", "runs", "passes"]:
    """Return what code of a file is: a program's (`asks`), JAX's own (`runs`), or neither."""
    if "§" in path:
        return "asks"
    if path.startswith(_JAX):
        inside = path[len(_JAX) :].replace(os.sep, "/")
        return (
            "passes" if inside.startswith(_PASSES) else
            "asks" if inside.startswith(_CHOOSES) else "runs"
        )  # fmt: skip
    if path.startswith(OURS):
        return (
            "passes" if path.endswith(_HAND_ON) or f"{os.sep}dry_runs{os.sep}" in path else "runs"
        )
    if path.startswith(_JAXLIB):
        return "runs"
    return "passes" if code_origins.of_file(path) == code_origins.PYTHON else "asks"


def is_called_by_program() -> bool:
    """Return whether a program or library called the caller, and not JAX itself, to run."""
    return _asker(3) is not None


def _asker(depth: int = 2) -> FrameType | None:
    """Return the frame of the program or library that asks; `None` if JAX itself does, to run.

    Args:
        depth: the number of calls from whoever asks to this one.
    """
    if _sight.hidden:
        return None
    for frame in code_origins.outwards(sys._getframe(depth)):
        role = _role(frame.f_code.co_filename)
        if role != "passes":
            return frame if role == "asks" else None
    return None


@dataclass(frozen=True, slots=True)
class _Unknown:
    """The target's answer is not known; `reason` is a clause about what stands for it."""

    reason: str
    stand_in: str | None = None


_TRUE = object()
"""The answer of a question that the target does not answer: that of the CPU."""


def _told(frame: FrameType | None, answer: Callable[[FakeDevice], object]) -> object:
    """Report a question of `frame`; return the target's answer, or `_TRUE`."""
    if frame is None:
        return _TRUE
    reason, value = "", _TRUE
    try:
        if _sight.device is not None:
            value = answer(_sight.device)
        if isinstance(value, _Unknown):
            reason, value = value.reason, _TRUE if value.stand_in is None else value.stand_in
    finally:
        # Also if `answer` raises `AttributeError`.
        _sight.asked(frame, reason)
    return value


def _answer(kind: type, name: str, value: Callable[..., object], is_method: bool = False) -> None:
    """Replace an attribute of devices or clients.

    Args:
        kind: their class.
        name: the attribute; it need not exist on CPUs.
        value: returns what it is on the target, or that it is `_Unknown`.
        is_method: whether it is a method without arguments.
    """
    original = getattr(kind, name) if is_method else vars(kind).get(name)

    def get(self: object) -> object:
        known = _told(_asker(), lambda device: value(device, self))
        if known is not _TRUE:
            return known
        if original is None:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        return original(self) if is_method else original.__get__(self)

    _replace(kind, name, get if is_method else property(get))


def _kind(device: FakeDevice, _: object) -> object:
    if device.device_kind:
        return device.device_kind
    unnamed = _UNNAMED[device.platform]
    return _Unknown(f"reads `device_kind`: it is not known, and is {unnamed!r} here", unnamed)


def _version(device: FakeDevice, _: object) -> object:
    version = f"PJRT C API\n{device.platform}"
    return _Unknown("reads `platform_version`: the number in it is not known", version)


def _attribute(name: str, device: FakeDevice, _: object) -> object:
    if name == "compute_capability" and device.capability:
        return device.capability
    if name == "num_cores" and device.cores:
        return device.cores
    if name in _UNKNOWN_ATTRIBUTES.get(device.family, ()):
        return _Unknown(f"reads `{name}` of a device: the CPU here has none")
    raise AttributeError(f"no device of {device.platform} has {name!r}")


def _written(device: FakeDevice, of: jax.Device) -> str:
    return f"{_REPR[device.platform]}(id={of.id})"


def _text(device: FakeDevice, of: jax.Device) -> str:
    """Return how `str` writes a device."""
    return f"TPU_{of.id}" if device.platform == "tpu" else f"{device.platform}:{of.id}"


def _name_backends() -> None:
    """Let `jax.devices("gpu")`, and all else that names a platform, find the target's."""
    original, every = xla_bridge.get_backend, xla_bridge.backends

    def get_backend(platform: Any = None) -> Any:
        chosen = platform if isinstance(platform, str) else ""
        if chosen:
            of_cpu = _Unknown("asks for the CPU's devices: here they are those of the target")
            _told(_asker(), lambda device: of_cpu if chosen == "cpu" else "")
        if platform is None:
            chosen = str(jax.config.values["jax_platform_name"] or "")
            if chosen and (frame := _nearest_program()) is not None:
                _sight.asked(frame, "")
        try:
            return original(platform)
        except RuntimeError:
            # JAX itself asks, too: for the platform of `jit(backend="gpu")`.
            if not _is_targets(chosen):
                raise
            return original("cpu")

    def backends() -> dict[str, Any]:
        with _on_cpu():
            found = every()
        known = _told(_asker(), lambda device: {**found, device.platform: original(None)})
        return found if known is _TRUE else known  # type: ignore[return-value]

    replaced = {"get_backend": get_backend, "backends": backends}
    for name, function in replaced.items():
        before: Any = getattr(xla_bridge, name)
        functools.update_wrapper(function, before)
        for attribute in ("cache_clear", "cache_info"):
            if hasattr(before, attribute):
                setattr(function, attribute, getattr(before, attribute))
        # Modules that import the function by name hold their own reference.
        for module in ("jax._src.xla_bridge", "jax.extend.backend", "jax.lib.xla_bridge"):
            holder = sys.modules.get(module)
            if holder is not None and getattr(holder, name, None) is before:
                _replace(holder, name, function)


@contextlib.contextmanager
def _on_cpu() -> Iterator[None]:
    """Make the CPU's backend in this block, though a program has set `JAX_PLATFORMS` to `cuda`."""
    chosen = jax.config.values["jax_platforms"]
    if chosen == _PLATFORMS_AT_START or xla_bridge.backends_are_initialized():
        yield
        return
    if (frame := _nearest_program()) is not None:
        _sight.asked(frame, "")
    if not any(map(_is_targets, str(chosen or "").split(","))):
        yield
        return
    config.update("jax_platforms", "cpu")
    try:
        yield
    finally:
        config.update("jax_platforms", chosen)


def _is_targets(name: str) -> bool:
    """Return whether a platform's name is one of the target's, which runs on the CPU here."""
    device = _sight.device
    if device is None or _sight.hidden:
        return False
    return name.strip() in (device.platform, device.family)


def _nearest_program() -> FrameType | None:
    """Return the innermost frame of a program or library; `None` if there is none."""
    frames = code_origins.outwards(sys._getframe(1))
    return next((each for each in frames if _role(each.f_code.co_filename) == "asks"), None)
