"""Compile StableHLO with XLA's clients, for devices that are present and for those that are not.

This applies to JAX 0.8 to 0.12 (for GPUs that are not present: 0.9 and newer).

For a Mosaic kernel of Pallas, XLA links host code against JAX's GPU runtime (`jaxlib/mosaic/gpu`),
which a machine without that GPU does not load.
The optimized HLO is complete by then; it is read from XLA's dump.

Private API used: `compiler.get_compile_options` and `backend_compile_and_load`,
`mlir.make_ir_context`, `xla_client.DeviceList`, executables' `hlo_modules`,
`get_compiled_memory_stats` and `cost_analysis`, `_jax.hlo_module_cost_analysis`, `topologies` with
a target's description.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client  # type: ignore[attr-defined]
from jax.experimental import topologies
from jaxlib import _jax, version
from jaxlib.mlir.dialects import stablehlo

log = logging.getLogger(__name__)

JAXLIB: str = version.__version__


class NoDevice(Exception):
    """There is no such device, and it cannot be described; the message has the reason."""


class Refused(Exception):
    """The program cannot be compiled; `kind` as in `protocol.NotCompiled`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Device:
    """A device to compile for: the device itself if `here`, else its description."""

    device: Any
    here: bool
    platform_version: str


@dataclass(frozen=True, slots=True)
class Compilation:
    """The result of XLA; sizes in bytes, -1 if unknown."""

    hlo: str
    temporaries: int = -1
    arguments: int = -1
    outputs: int = -1
    aliased: int = -1
    code: int = -1
    peak: int = -1
    flops: float = -1.0
    bytes_accessed: float = -1.0
    linked: bool = True
    """Whether XLA also linked the executable; if not, only the size of temporaries is known."""


_UNLINKED = "Failed to lookup host symbol"
_TEMPORARY = re.compile(r"^allocation \d+: size (\d+), .*preallocated-temp", re.MULTILINE)


def newest_stablehlo() -> str:
    """Return the newest version of StableHLO that this jaxlib reads."""
    return str(stablehlo.get_current_version())


def local(platform: str) -> Device:
    """Return this machine's first device of a platform, `cpu`, `cuda`, `rocm` or `tpu`.

    Raises:
        NoDevice: there is none.
    """
    try:
        device: Any = jax.local_devices(backend=platform)[0]
    except RuntimeError as error:
        raise NoDevice(
            f"JAX in {sys.executable} found no {platform} device or plugin: {error}"
        ) from error
    return Device(device, True, str(device.client.platform_version))


def described(platform: str, **attributes: Any) -> Device:
    """Return a device that is not present.

    Args:
        platform: `cuda`, `rocm` or `tpu`.
        attributes: the plugin's description of the device: `topology_name`, or `topology` and
            `target_config`, the text of a GpuTargetConfigProto.

    Raises:
        NoDevice: the plugin is not installed, or does not know the device.
    """
    make: Any = topologies.get_topology_desc
    try:
        device = make(platform=platform, **attributes).devices[0]
    except Exception as error:
        # Plugins raise various exceptions if they are missing or do not know a name.
        raise NoDevice(
            f"JAX in {sys.executable} cannot describe this {platform} device: {error}"
        ) from error
    return Device(device, False, str(getattr(device.client, "platform_version", "")))


def compile(program: bytes, device: Device, options: Mapping[str, str | bool]) -> Compilation:
    """Compile a portable artifact, and return the optimized HLO with its figures.

    Raises:
        Refused: this version cannot read the artifact, or XLA cannot compile it.
    """
    try:
        executable = _compiled(program, device, options)
    except Refused as error:
        if _UNLINKED not in str(error):
            raise
        return _dumped(program, device, options)
    modules = executable.hlo_modules()
    if not modules:
        raise Refused("target", f"jaxlib {JAXLIB} has no optimized HLO for this target")
    flops, accessed = _cost(executable, modules[0])
    return Compilation(
        modules[0].to_string(), **_memory(executable), flops=flops, bytes_accessed=accessed
    )


def _compiled(program: bytes, device: Device, options: Mapping[str, str | bool]) -> Any:
    target = device.device
    context: Any = mlir.make_ir_context()
    with context:
        try:
            module: Any = stablehlo.deserialize_portable_artifact(context, program)
        except Exception as error:
            raise Refused(
                "program",
                f"jaxlib {JAXLIB} cannot read the program (it supports StableHLO up to "
                f"{newest_stablehlo()}): {error}",
            ) from error
        overrides: Any = dict(options)  # JAX's annotation has only `str`, but flags are bools
        settings = compiler.get_compile_options(
            1,
            1,
            device_assignment=np.array([[target.id]]),
            env_options_overrides=overrides,
            backend=target.client,
        )
        devices: Any = xla_client.DeviceList((target,))
        run: Any = compiler.backend_compile_and_load
        try:
            return run(target.client, module, devices, settings, [])
        except Exception as error:
            raise Refused("xla", f"{type(error).__name__}: {error}") from error


def _dumped(program: bytes, device: Device, options: Mapping[str, str | bool]) -> Compilation:
    """Return the HLO that XLA dumps before it links, in a folder for this user alone."""
    with tempfile.TemporaryDirectory(prefix="jaxsight-") as folder:
        dumping: dict[str, str | bool] = {"xla_dump_to": folder, "xla_dump_hlo_as_text": True}
        try:
            _compiled(program, device, {**options, **dumping})
        except Refused:
            texts = list(Path(folder).glob("*_gpu_after_optimizations.txt"))
            if len(texts) != 1:
                raise
            hlo = texts[0].read_text()
            buffers = texts[0].with_name(f"{texts[0].stem}-buffer-assignment.txt")
            if not buffers.exists():
                return Compilation(hlo, linked=False)
            sizes = map(int, _TEMPORARY.findall(buffers.read_text()))
            return Compilation(hlo, temporaries=sum(sizes), linked=False)
    raise Refused("xla", "XLA failed to link the program, but not when retried; try again")


def _memory(executable: Any) -> dict[str, Any]:
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception:
        log.exception("no memory analysis")
        return {}
    return {
        "temporaries": stats.temp_size_in_bytes,
        "arguments": stats.argument_size_in_bytes,
        "outputs": stats.output_size_in_bytes,
        "aliased": stats.alias_size_in_bytes,
        "code": stats.generated_code_size_in_bytes,
        "peak": getattr(stats, "peak_memory_in_bytes", -1),
    }


def _cost(executable: Any, module: Any) -> tuple[float, float]:
    cost: Any = None
    with contextlib.suppress(Exception):  # not all clients have one, but modules do
        cost = executable.cost_analysis()
    if not cost:
        try:
            cost = _jax.hlo_module_cost_analysis(local("cpu").device.client, module)
        except Exception:
            log.exception("no cost analysis")
            return -1.0, -1.0
    if isinstance(cost, list | tuple):
        cost = cost[0]
    return float(cost.get("flops", -1.0)), float(cost.get("bytes accessed", -1.0))
