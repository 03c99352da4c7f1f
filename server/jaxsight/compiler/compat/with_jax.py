"""Compile with JAX: devices of every platform, and JAX's own configuration.

This applies to JAX 0.8 to 0.12.
`jaxlib_alone` has the same functions for this machine's CPU, without importing JAX.

Private API used: `compiler.get_compile_options` and `backend_compile_and_load`,
`mlir.make_ir_context`, `xla_client.DeviceList`, `topologies` with a target's description,
`LoadedExecutable.execute_sharded` and its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import jax
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client  # type: ignore[attr-defined]
from jax.experimental import topologies

from jaxsight.compiler.compat.partitioning import assignment, distribute
from jaxsight.wire.meshes import Distribution


def devices(platform: str, count: int) -> tuple[Any, ...]:
    """Return the first `count` of this machine's devices of a platform; CPUs are simulated.

    Raises:
        RuntimeError: there are fewer.
    """
    present = jax.local_devices(backend=platform)
    if len(present) >= count:
        return tuple(present[:count])
    if platform == "cpu":
        return tuple(_cpu_client(count).local_devices())
    raise RuntimeError(f"{count} devices are needed, and {len(present)} are present")


@cache
def _cpu_client(count: int) -> Any:
    return xla_client.make_cpu_client(num_devices=count)


def described(platform: str, attributes: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return devices that are not present, by their plugin's attributes.

    Plugins raise various exceptions if they are missing or do not know a name.
    """
    make: Any = topologies.get_topology_desc
    return tuple(make(platform=platform, **attributes).devices)


def context() -> Any:
    """Return an MLIR context with the dialects that programs have."""
    make: Any = mlir.make_ir_context
    return make()


def options(
    devices: Sequence[Any], overrides: Mapping[str, str | bool], distribution: Distribution
) -> Any:
    """Return the options to compile for devices, as an `xla_client.CompileOptions`.

    Args:
        devices: the devices.
        overrides: XLA's debug options by name.
        distribution: how the program is distributed over them.
    """
    flags: Any = dict(overrides)  # JAX's annotation has only `str`, but flags are bools
    made = compiler.get_compile_options(
        distribution.replicas,
        distribution.partitions,
        device_assignment=assignment(devices, distribution),
        env_options_overrides=flags,
        backend=devices[0].client,
    )
    if distribution.devices > 1:
        distribute(made.executable_build_options, distribution)
    return made


def load(devices: Sequence[Any], module: Any, settings: Any) -> Any:
    """Compile an MLIR module, and return the executable."""
    run: Any = compiler.backend_compile_and_load
    listed: Any = xla_client.DeviceList(tuple(devices))
    return run(devices[0].client, module, listed, settings, [])


def executed(executable: Any, arguments: object) -> object:
    """Run a program for one device with a list of its arguments, and return its results."""
    return executable.execute_sharded(arguments).disassemble_into_single_device_arrays()
