"""The device and the process that code sees, which need not be those that run it."""

from __future__ import annotations

from dataclasses import dataclass

_FAMILIES = {"cuda": "gpu", "rocm": "gpu"}


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """What a program is told about its devices, instead of the CPU that it runs on."""

    platform: str
    """As JAX lowers for it: `cuda`, `rocm`, `tpu`."""
    device_kind: str = ""
    """JAX's name of it; empty if unknown."""
    capability: str = ""
    """The compute capability of an NVIDIA GPU (`9.0`); empty if none or unknown."""
    cores: int = 0
    """The TensorCores of a TPU's device; 0 if none or unknown."""

    @property
    def family(self) -> str:
        """What `jax.default_backend()` and `Device.platform` are on it: `gpu` or `tpu`."""
        return _FAMILIES.get(self.platform, self.platform)


@dataclass(frozen=True, slots=True)
class SeenProcess:
    """What a program is told about its process, as if it were one of a job with several."""

    index: int
    count: int
