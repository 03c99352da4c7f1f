"""Compile for this machine's CPU with jaxlib alone, as JAX does by default.

Importing JAX costs a compiler 0.45 s of processor time and 45 MiB, and all that it would use of it
is a client, an MLIR context and compile options.
This module has them for JAX 0.8 to 0.12, where `xla.is_default`.

It repeats `jax/_src/compiler.py` (`get_compile_options`, `backend_compile_and_load`),
`jax/_src/interpreters/mlir.py` (`make_ir_context`), `jax/_src/xla_bridge.py` (`make_cpu_client`)
and `jax/_src/lax/linalg.py` (`register_module_custom_calls`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jaxlib import cpu_feature_guard, lapack, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, mpmd, sdy, stablehlo

from jaxsight.compiler.compat.partitioning import assignment, distribute
from jaxsight.wire.meshes import Distribution

_NO_PROFILE = -1
_MEMORY_FITTING = 29
"""The default of `jax_memory_fitting_level` (`O2`), which is not jaxlib's own."""


@cache
def devices(platform: str, count: int) -> tuple[Any, ...]:
    """Return `count` simulated devices of this machine's CPU; the platform is `cpu`.

    Raises:
        RuntimeError: jaxlib was built for another processor.
    """
    cpu_feature_guard.check_cpu_features()
    for name, handler, api in lapack.registrations()[platform]:
        xla_client.register_custom_call_target(name, handler, platform, api)
    for name in lapack.batch_partitionable_targets():
        xla_client.register_custom_call_as_batch_partitionable(name)
    client: Any = xla_client.make_cpu_client(num_devices=count)
    return tuple(client.local_devices())


class _Context(ir.Context):
    def __init__(self) -> None:
        # Not `ir.Context.__init__`, which loads every dialect of jaxlib.
        super(ir.Context, self).__init__()


@cache
def _shared() -> tuple[Any, Any]:
    """Return the registry of upstream dialects, and the threads of all contexts."""
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    return registry, ir.ThreadPool()


def context() -> Any:
    """Return an MLIR context with the dialects that programs have."""
    registry, threads = _shared()
    made = _Context()
    made.append_dialect_registry(registry)
    made.load_all_available_dialects()
    made.set_thread_pool(threads)
    sdy.register_dialect(made)
    mpmd.register_dialect(made)
    mhlo.register_mhlo_dialect(made)
    chlo.register_dialect(made)
    stablehlo.register_dialect(made)
    return made


def options(
    devices: Sequence[Any], overrides: Mapping[str, str | bool], distribution: Distribution
) -> Any:
    """Return the options to compile for devices, as an `xla_client.CompileOptions`.

    Args:
        devices: the devices.
        overrides: XLA's debug options by name.
        distribution: how the program is distributed over them.
    """
    made: Any = xla_client.CompileOptions()
    made.num_replicas, made.num_partitions = distribution.replicas, distribution.partitions
    made.device_assignment = xla_client.DeviceAssignment.create(assignment(devices, distribution))
    made.env_option_overrides = list(overrides.items())
    made.profile_version = _NO_PROFILE
    build = made.executable_build_options
    distribute(build, distribution)
    build.memory_fitting_level = _MEMORY_FITTING
    build.debug_options.xla_detailed_logging = True
    return made


def load(devices: Sequence[Any], module: Any, settings: Any) -> Any:
    """Compile an MLIR module, and return the executable."""
    return devices[0].client.compile_and_load(
        module, executable_devices=xla_client.DeviceList(tuple(devices)), compile_options=settings
    )
