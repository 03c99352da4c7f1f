"""Find this machine's GPUs and TPUs from the files of their drivers, without using them.

* NVIDIA: `/proc/driver/nvidia/gpus/*/information` has the model and the device's minor number, and
  `/dev/nvidiaN` is what a container can see of it (driver README, "The /proc interface").
* AMD: `/dev/kfd`, and its nodes in `/sys/class/kfd/kfd/topology` (Linux,
  `drivers/gpu/drm/amd/amdkfd/kfd_topology.c`; nodes without `simd_count` are CPUs).
* TPU: Google's PCI devices (`jax/_src/hardware_utils.py`), and `/dev/accelN` or `/dev/vfio`.
* Windows' Linux (WSL2): `/dev/dxg` with the driver's `libcuda.so.1`; models are not listed there.

JAX's variable `JAX_PLATFORMS` and those of the vendors can hide a device.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading

ROOT = Path("/")
"""The root of the files of the system."""

PLATFORMS = ("cuda", "rocm", "tpu")
"""JAX's accelerators, the preferred one first."""

_VISIBLE = {
    "cuda": ("CUDA_VISIBLE_DEVICES",),
    "rocm": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "tpu": (),
}
"""Variables that list a vendor's visible devices (CUDA: programming guide, "Environment Variables";
ROCm: "GPU isolation techniques")."""

_ALIASES = {"gpu": ("cuda", "rocm")}
"""`expand_platform_alias` in `jax/_src/xla_bridge.py`."""

_GOOGLE, _AMD = "0x1ae0", "4098"
"""PCI vendors: Google's in hexadecimal, AMD's as `kfd` writes it."""

_TPUS = {
    "0x005e": "TPU v4",
    "0x0062": "TPU v5",
    "0x0063": "TPU v5 lite",
    "0x006f": "TPU v6 lite",
    "0x0076": "TPU7x",
}
"""libtpu's device kinds by PCI device (`jax/_src/hardware_utils.py`, `jax/_src/mesh_utils.py`)."""


@dataclass(frozen=True, slots=True)
class OwnDevice:
    """The accelerator that JAX would use as the first of its platform."""

    platform: str
    device_kind: str = ""
    """Its name, as JAX's `device_kind` has it; empty if the driver's files do not say."""
    hidden: str = ""
    """The variable that hides it (`JAX_PLATFORMS=cpu`); empty if it is visible."""

    @property
    def title(self) -> str:
        """The device for users: `this machine's NVIDIA H200`."""
        vendor = {"cuda": "NVIDIA GPU", "rocm": "AMD GPU", "tpu": "TPU"}[self.platform]
        return f"this machine's {self.device_kind or vendor}"


def own_device(platform: str, environ: Mapping[str, str]) -> OwnDevice | None:
    """Return this machine's first device of `cuda`, `rocm` or `tpu`; `None` if it has none.

    Args:
        platform: JAX's platform.
        environ: the environment variables of the user's programs.
    """
    kinds = {"cuda": _nvidia, "rocm": _amd, "tpu": _google}[platform]()
    if not kinds:
        return None
    allowed = environ.get("JAX_PLATFORMS", "")
    names = [name.strip() for name in allowed.split(",")]
    if allowed and platform not in {each for n in names for each in _ALIASES.get(n, (n,))}:
        return OwnDevice(platform, kinds[0].device_kind, f"JAX_PLATFORMS={allowed}")
    for variable in _VISIBLE[platform]:
        if variable in environ:
            visible = _chosen(kinds, environ[variable])
            if not visible:
                return OwnDevice(platform, kinds[0].device_kind, f"{variable}={environ[variable]}")
            kinds = visible
    # Devices are numbered as on the bus, unless CUDA puts the fastest one first.
    keeps_order = platform != "cuda" or environ.get("CUDA_DEVICE_ORDER", "") == "PCI_BUS_ID"
    if len({device.device_kind for device in kinds}) > 1 and not keeps_order:
        return OwnDevice(platform)
    return OwnDevice(platform, kinds[0].device_kind)


@dataclass(frozen=True, slots=True)
class _Found:
    """A device in the order of the bus."""

    device_kind: str = ""
    uuid: str = ""


def _chosen(devices: Sequence[_Found], value: str) -> list[_Found]:
    """Return the devices that a variable lists; an invalid entry ends the list, as in CUDA.

    A part of a GPU (MIG) has other figures than the GPU: its kind is not known.
    """
    chosen = []
    for entry in (entry.strip() for entry in value.split(",")):
        if entry.startswith("MIG-"):
            chosen.append(_Found())
        elif entry.isdecimal() and int(entry) < len(devices):
            chosen.append(devices[int(entry)])
        elif match := [each for each in devices if entry and each.uuid.startswith(entry)]:
            chosen.append(match[0])
        else:
            break
    return chosen


def _nvidia() -> list[_Found]:
    listed = [_fields(path) for path in reading.below(ROOT, _INFORMATION)]
    found = [
        _Found(fields.get("Model", ""), fields.get("GPU UUID", ""))
        for fields in listed
        if reading.exists(ROOT / f"dev/nvidia{fields.get('Device Minor', '')}")
    ]
    if found or listed:
        return found
    nodes = [path for path in reading.below(ROOT, "dev/nvidia*") if _NODE.fullmatch(path.name)]
    is_wsl = reading.exists(ROOT / "dev/dxg") and reading.exists(
        ROOT / "usr/lib/wsl/lib/libcuda.so.1"
    )
    return [_Found()] * (len(nodes) or is_wsl)


_INFORMATION = "proc/driver/nvidia/gpus/*/information"
_NODE = re.compile(r"nvidia\d+")


def _amd() -> list[_Found]:
    if not reading.exists(ROOT / "dev/kfd"):
        return []
    nodes = reading.below(ROOT, "sys/class/kfd/kfd/topology/nodes/*/properties")
    count = sum(
        fields.get("vendor_id") == _AMD and fields.get("simd_count", "0") != "0"
        for fields in map(_fields, nodes)
    )
    names = [
        name
        for path in reading.below(ROOT, "sys/bus/pci/drivers/amdgpu/*/product_name")
        if (name := _content(path))
    ]
    return [_Found(name) for name in names] if len(names) == count else [_Found()] * count


def _google() -> list[_Found]:
    if not reading.below(ROOT, "dev/accel*") and not reading.exists(ROOT / "dev/vfio/vfio"):
        return []
    return [
        _Found(kind)
        for path in reading.below(ROOT, "sys/bus/pci/devices/*/vendor")
        if _content(path) == _GOOGLE and (kind := _TPUS.get(_content(path.with_name("device"))))
    ]


def _fields(path: Path) -> dict[str, str]:
    """Return the lines of a file as pairs: `Model: NVIDIA H200`, `simd_count 1216`."""
    lines = _content(path).splitlines()
    pairs = [line.partition(":" if ":" in line else " ") for line in lines]
    return {name.strip(): value.strip() for name, mark, value in pairs if mark}


def _content(path: Path) -> str:
    try:
        return reading.text(path, reading.SMALL, strict=False).strip()
    except reading.UnreadableError:
        return ""
