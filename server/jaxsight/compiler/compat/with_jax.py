"""Compile with JAX: devices of every platform, and JAX's own configuration.

This applies to JAX 0.8 to 0.12.
`jaxlib_alone` has the same functions for this machine's CPU, without importing JAX.

Private API used: `compiler.get_compile_options` and `backend_compile_and_load`,
`mlir.make_ir_context`, `xla_client.DeviceList`, `topologies` with a target's description.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import xla_client  # type: ignore[attr-defined]
from jax.experimental import topologies


def device(platform: str) -> Any:
    """Return this machine's first device of a platform.

    Raises:
        RuntimeError: there is none.
    """
    return jax.local_devices(backend=platform)[0]


def described(platform: str, attributes: Mapping[str, Any]) -> Any:
    """Return a device that is not present, by its plugin's attributes.

    Plugins raise various exceptions if they are missing or do not know a name.
    """
    make: Any = topologies.get_topology_desc
    return make(platform=platform, **attributes).devices[0]


def context() -> Any:
    """Return an MLIR context with the dialects that programs have."""
    make: Any = mlir.make_ir_context
    return make()


def options(device: Any, overrides: Mapping[str, str | bool]) -> Any:
    """Return the options to compile for one device, as an `xla_client.CompileOptions`.

    Args:
        device: the device.
        overrides: XLA's debug options by name.
    """
    given: Any = dict(overrides)  # JAX's annotation has only `str`, but flags are bools
    return compiler.get_compile_options(
        1,
        1,
        device_assignment=np.array([[device.id]]),
        env_options_overrides=given,
        backend=device.client,
    )


def load(device: Any, module: Any, settings: Any) -> Any:
    """Compile an MLIR module, and return the executable."""
    devices: Any = xla_client.DeviceList((device,))
    run: Any = compiler.backend_compile_and_load
    return run(device.client, module, devices, settings, [])
