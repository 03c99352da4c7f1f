"""Compile StableHLO with XLA's clients, for devices that are present and for those that are not.

This applies to JAX 0.8 to 0.12 (for GPUs that are not present: 0.9 and newer).

For a Mosaic kernel of Pallas, XLA links host code against JAX's GPU runtime (`jaxlib/mosaic/gpu`),
which a machine without that GPU does not load; for a sort by CUB, it asks the GPU.
The optimized HLO and its memory are complete by then; they are read from XLA's dump.

Private API used: executables' `hlo_modules`, `get_compiled_memory_stats` and `cost_analysis`,
`_jax.hlo_module_cost_analysis`; `with_jax` and `jaxlib_alone` have that of compiling.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from jaxlib import _jax, version
from jaxlib.mlir.dialects import stablehlo

from jaxsight import timeline
from jaxsight.compiler.compat import partitioning, schedule
from jaxsight.wire.meshes import ONE_DEVICE, Distribution
from jaxsight.wire.messages.compiling import HostMemory, Memory, Refusal

log = logging.getLogger(__name__)

JAXLIB: str = version.__version__


class NoDevice(Exception):
    """There is no such device, and it cannot be described; the message has the reason."""


class NotCompilable(Exception):
    """The program cannot be compiled; `kind` as in `protocol.NotCompiled`."""

    def __init__(self, kind: Refusal, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices to compile for: the devices themselves if `here`, else their descriptions."""

    devices: tuple[Any, ...]
    here: bool
    platform_version: str
    toolchain: ModuleType
    """What compiles for them: `jaxlib_alone` or `with_jax`."""
    distribution: Distribution = ONE_DEVICE
    """How programs are distributed over them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Those of XLA that they need."""
    notes: tuple[str, ...] = ()
    """How a program that is compiled for them may differ on present devices."""

    @property
    def platform(self) -> str:
        """Their platform, as their plugin names it: `cpu`, `gpu`, `tpu`."""
        return str(self.devices[0].platform)

    @property
    def kind(self) -> str:
        """JAX's `device_kind` of accelerators here; empty for others, or if they differ."""
        kinds = {str(device.device_kind) for device in self.devices}
        is_known = self.here and self.platform != "cpu" and len(kinds) == 1
        return kinds.pop() if is_known else ""


@dataclass(frozen=True, slots=True)
class Compilation:
    """The result of XLA."""

    hlo: str
    is_complete: bool = True
    """Whether XLA generated code; if not, at most the size of temporaries is known."""
    memory: Memory = field(default_factory=Memory)
    flops: float = -1.0
    unpartitioned: str = ""
    """The HLO before it was partitioned, with shardings; empty for one device."""
    log: str = ""
    """What XLA logged; empty for one device."""


_AFTER_HLO = re.compile(r"Failed to lookup host symbol|CUDA Runtime error")
"""XLA's errors without a device after memory is assigned: it links Mosaic's host code, and asks CUB
for the scratch memory of a sort (`CubSortKeysInstantiate` in
`xla/stream_executor/cuda/cub_sort_kernel_cuda.cc`).
"""


def newest_stablehlo() -> str:
    """Return the newest version of StableHLO that this jaxlib reads."""
    return str(stablehlo.get_current_version())


def local(platform: str, count: int = 1) -> Devices:
    """Return this machine's first devices of a platform, `cpu`, `cuda`, `rocm` or `tpu`.

    Several CPUs are simulated.

    Raises:
        NoDevice: there are fewer than `count`.
    """
    try:
        toolchain = _toolchain(platform)
        devices: tuple[Any, ...] = toolchain.devices(platform, count)
    except (RuntimeError, ImportError) as error:
        wanted = (
            f"no {platform} device or plugin" if count == 1 else f"no {count} {platform} devices"
        )
        raise NoDevice(f"JAX in {sys.executable} found {wanted}: {error}") from error
    return Devices(devices, True, str(devices[0].client.platform_version), toolchain)


def _toolchain(platform: str) -> ModuleType:
    """Return the module that compiles for this machine's devices of a platform."""
    if platform == "cpu" and "jax" not in sys.modules and is_default():
        from jaxsight.compiler.compat import jaxlib_alone

        return jaxlib_alone
    from jaxsight.compiler.compat import with_jax

    return with_jax


def described(platform: str, **attributes: Any) -> Devices:
    """Return devices that are not present.

    Args:
        platform: `cuda`, `rocm` or `tpu`.
        attributes: the plugin's description of the devices: `topology_name`, or `topology` and
            `target_config`, the text of a GpuTargetConfigProto.

    Raises:
        NoDevice: the plugin is not installed, or does not know the device.
    """
    try:
        from jaxsight.compiler.compat import with_jax

        devices = with_jax.described(platform, attributes)
    except Exception as error:
        raise NoDevice(
            f"JAX in {sys.executable} cannot describe this {platform} device: {error}"
        ) from error
    version = str(getattr(devices[0].client, "platform_version", ""))
    return Devices(devices, False, version, with_jax)


class _Ended(Exception):
    """A compile that is wanted no further, or not any more; XLA raises an error of its own."""


_PALLAS = (b"mosaic_gpu", b"gpu.triton", b"triton_kernel_call")
"""Targets of Pallas's custom calls. That a GPU lacks what such a kernel needs is found while code
is generated for it (`xla/backends/gpu/codegen/triton`, `jaxlib/mosaic/gpu/custom_call.cc`).
"""


def can_stop(devices: Devices) -> bool:
    """Return whether compiles for a device can end with the schedule, before code generation."""
    return devices.here and devices.platform == "cpu" and schedule.can_look()


def compile_to_schedule(
    program: bytes, devices: Devices, options: Mapping[str, str | bool]
) -> Compilation:
    """Compile a portable artifact until XLA has scheduled it: kernels are known, memory is not.

    As `compile` where there is no way to end, and for programs that XLA still changes.
    For processes in which no other thread compiles, see `schedule.looking`.

    Raises:
        Refused: as for `compile`.
    """
    is_absent_gpu = not devices.here and devices.platform == "gpu"
    has_pallas = any(name in program for name in _PALLAS)
    can_dump = is_absent_gpu and schedule.can_look() and not has_pallas
    if not can_dump and not can_stop(devices):
        return compile(program, devices, options)
    with partitioning.watched(devices.distribution, options) as watch:
        if can_dump:
            compiled = _compile_to_dump(program, devices, watch)
        else:
            compiled = _compile_to_hook(program, devices, watch.options)
    return replace(compiled, unpartitioned=watch.hlo, log=watch.log)


def _compile_to_hook(
    program: bytes, devices: Devices, options: Mapping[str, str | bool]
) -> Compilation:
    scheduled: list[bytes] = []

    def look(serialized: bytes) -> None:
        if schedule.is_final(serialized):
            scheduled.append(serialized)
            timeline.mark("scheduled")
            raise _Ended

    module = _parsed(program, devices)
    try:
        with schedule.looking(look):
            executable = _compiled(module, devices, options)
    except NotCompilable:
        if not scheduled:
            raise
        return _incomplete(scheduled[0])
    return _complete(executable)


def _compile_to_dump(
    program: bytes, devices: Devices, watch: partitioning.WatchedCompile
) -> Compilation:
    """Compile a portable artifact for a GPU that is not present until memory is assigned.

    A compile that ends before is repeated completely, for XLA's own error.

    Raises:
        Refused: as for `compile`.
    """
    module = _parsed(program, devices)
    with schedule.dump_folder() as folder:
        try:
            ending = {**watch.options, **schedule.ending(folder)}
            return _complete(_compiled(module, devices, ending))
        except NotCompilable:
            dumped = schedule.read_dump(folder)
        finally:
            watch.also(folder)
    if dumped is None:
        return _compile(program, devices, watch)
    return _without_code(dumped)


def _incomplete(program: bytes) -> Compilation:
    """Return the result for a serialized program that XLA has scheduled."""
    optimized = schedule.module_of(program)
    flops = _flops(None, optimized)
    hlo = optimized.to_string()
    timeline.mark("HLO printed")
    return Compilation(hlo, is_complete=False, flops=flops)


def compile(
    program: bytes,
    devices: Devices,
    options: Mapping[str, str | bool],
    is_cancelled: Callable[[], bool] | None = None,
) -> Compilation:
    """Compile a portable artifact, and return the optimized HLO with its figures.

    Args:
        is_cancelled: asked when XLA has scheduled the program, where a compile can end; for
            processes in which no other thread compiles.

    Raises:
        Refused: this version cannot read the artifact, XLA cannot compile it, or the compile is
            cancelled.
    """
    with partitioning.watched(devices.distribution, options) as watch:
        compiled = _compile(program, devices, watch, is_cancelled)
    return replace(compiled, unpartitioned=watch.hlo, log=watch.log)


def _compile(
    program: bytes,
    devices: Devices,
    watch: partitioning.WatchedCompile,
    is_cancelled: Callable[[], bool] | None = None,
) -> Compilation:
    def look(serialized: bytes) -> None:
        if is_cancelled is not None and is_cancelled():
            raise _Ended

    can_end = is_cancelled is not None and can_stop(devices)
    watching = schedule.looking(look) if can_end else contextlib.nullcontext()
    try:
        with watching, _dumping(devices, watch) as dump:
            return _complete(_compiled(_parsed(program, devices), devices, watch.options))
    except NotCompilable as error:
        if is_cancelled is not None and is_cancelled():
            raise NotCompilable("cancelled", "the compile was cancelled") from error
        if not dump or _AFTER_HLO.search(str(error)) is None:
            raise
        return replace(_without_code(dump[0]), is_complete=True)


@contextlib.contextmanager
def _dumping(
    devices: Devices, watch: partitioning.WatchedCompile
) -> Iterator[list[schedule.Dumped]]:
    """Collect what XLA dumps, if the body fails to compile for a GPU that is not present."""
    dumped: list[schedule.Dumped] = []
    if devices.here or devices.platform != "gpu":
        yield dumped
        return
    with schedule.dump_folder() as folder:
        watch.options = {**watch.options, **schedule.dumping_into(folder)}
        try:
            yield dumped
        except NotCompilable:
            dumped += filter(None, [schedule.read_dump(folder)])
            raise
        finally:
            watch.also(folder)


def _complete(executable: Any) -> Compilation:
    modules = executable.hlo_modules()
    if not modules:
        raise NotCompilable("target", f"jaxlib {JAXLIB} has no optimized HLO for this target")
    flops = _flops(executable, modules[0])
    return Compilation(modules[0].to_string(), memory=memory_of(executable), flops=flops)


def _parsed(program: bytes, devices: Devices) -> Any:
    """Return a portable artifact as a module of MLIR.

    Raises:
        Refused: this version cannot read the artifact.
    """
    context: Any = devices.toolchain.context()
    with context:
        try:
            return stablehlo.deserialize_portable_artifact(context, program)
        except Exception as error:
            raise NotCompilable(
                "program",
                f"jaxlib {JAXLIB} cannot read the program (it supports StableHLO up to "
                f"{newest_stablehlo()}): {error}",
            ) from error


def _compiled(module: Any, devices: Devices, options: Mapping[str, str | bool]) -> Any:
    settings = devices.toolchain.options(devices.devices, options, devices.distribution)
    try:
        with module.context:
            return devices.toolchain.load(devices.devices, module, settings)
    except Exception as error:
        raise NotCompilable("xla", f"{type(error).__name__}: {error}") from error


def executable(program: bytes, devices: Devices, options: Mapping[str, str | bool]) -> Any:
    """Compile a portable artifact for devices that are present, to run it.

    Raises:
        Refused: as for `compile`.
    """
    return _compiled(_parsed(program, devices), devices, options)


def _without_code(dumped: schedule.Dumped) -> Compilation:
    """Return the result for a dumped program: all sizes but those of code, and the peak."""
    return replace(_incomplete(dumped.program), memory=dumped.memory)


def memory_of(executable: Any) -> Memory:
    """Return the memory analysis of a compiled program; unknown if XLA has none."""
    try:
        stats = executable.get_compiled_memory_stats()
    except Exception:
        log.exception("no memory analysis")
        return Memory()
    host = HostMemory(
        stats.host_temp_size_in_bytes,
        stats.host_argument_size_in_bytes,
        stats.host_output_size_in_bytes,
        stats.host_alias_size_in_bytes,
    )
    # XLA's peak is that of all memories together.
    is_alone = max(host.temporaries, host.arguments, host.outputs) <= 0
    return Memory(
        stats.temp_size_in_bytes,
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.alias_size_in_bytes,
        stats.generated_code_size_in_bytes,
        getattr(stats, "peak_memory_in_bytes", -1) if is_alone else -1,
        host,
    )


def _flops(executable: Any | None, module: Any) -> float:
    cost: Any = None
    with contextlib.suppress(Exception):  # not all clients have one, but modules do
        cost = executable.cost_analysis() if executable is not None else None
    try:
        cost = cost or _jax.hlo_module_cost_analysis(local("cpu").devices[0].client, module)
    except Exception:
        log.exception("no cost analysis")
        return -1.0
    cost = cost[0] if isinstance(cost, list | tuple) else cost
    return float(cost.get("flops", -1.0))


# How JAX is configured where a compiler runs.
#
# This applies to JAX 0.8 to 0.12, whose options have the same defaults (`jax/_src/config.py`) and
# are set by environment variables named `JAX_…`: a compiler runs no code that could set them.


_UNKNOWN = (0, 13)
"""The first version whose defaults are not known here."""

_OF_TRACING = frozenset({"JAX_ENABLE_X64", "JAX_TRACEBACK_FILTERING"})
"""Variables that have no effect on a compile."""


def is_default() -> bool:
    """Return whether JAX would compile for the CPU as it does by default, in a known version."""
    configured = {name for name, value in os.environ.items() if name.startswith("JAX_") and value}
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        configured.discard("JAX_PLATFORMS")
    known = tuple(version.__version_info__)[:2] < _UNKNOWN
    return known and configured <= _OF_TRACING
