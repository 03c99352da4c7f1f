"""Lower for a device that is not present: callbacks, and Pallas kernels for GPUs.

This applies to JAX 0.8 to 0.12.

Private API used:

* `mlir.ModuleContext.get_backend`. The lowering rule of callbacks (`callback.emit_python_callback`)
  calls it for the client of the platform, and it raises if the process has none. The rule for GPUs
  does not use the client; that for TPUs registers the callback with it, which only a run needs.
* `JaxprEqn.ctx`, the context that an equation was traced in. `jaxpr_subcomp` enters it to lower the
  equation, so a mesh that is set around the lowering has no effect. Triton's rule takes the compute
  capability from the `AbstractDevice` of the context's mesh since JAX 0.12
  (`pallas/triton/gpu_info.py`), Mosaic's since 0.10 (`experimental/mosaic/gpu`, `infer_arch`).
  0.8 and 0.9 do not use it.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from functools import cache
from typing import Any

import jax
from jax._src.interpreters import mlir

from jaxsight_source.compat.jaxpr_types import Equation

_KINDS = {
    "7.0": "Tesla T4",  # JAX knows no GPU with 7.0; XLA rejects Triton's kernels for both
    "7.5": "Tesla T4",
    "8.0": "NVIDIA A100",
    "8.6": "NVIDIA A10",
    "8.9": "NVIDIA L4",
    "9.0": "NVIDIA H100",
    "10.0": "NVIDIA B200",
    "10.3": "NVIDIA B300",
    "12.0": "NVIDIA RTX PRO 6000",
}
"""A GPU in `gpu_info.GpuVersion` for each compute capability; only the capability is used."""


class _Client:
    """A substitute for the client of a platform that this process does not have."""

    def make_python_callback_from_host_send_and_recv(self, *_args: object) -> object:
        """Register nothing: the program is compiled elsewhere and never run."""
        return object()


@contextlib.contextmanager
def clients() -> Iterator[None]:
    """Let lowering rules that need the platform's client work without one; not thread-safe."""
    context: Any = mlir.ModuleContext
    real = context.get_backend

    def get_backend(self: Any, optional: bool = False) -> object:
        try:
            return real(self, optional)
        except (RuntimeError, ValueError):
            # The process has no such platform, or the function's inputs are on another one.
            # For several platforms, JAX itself gives no client.
            if optional or len(self.platforms) > 1:
                raise
            return _Client()

    # On the class, as JAX makes a `ModuleContext` for each lowering.
    context.get_backend = get_backend
    try:
        yield
    finally:
        context.get_backend = real


def on_gpu(equation: Equation, capability: str) -> Equation:
    """Return the equation as if traced for a GPU of a compute capability, e.g. `9.0`.

    An unknown capability leaves it unchanged.
    """
    device = _gpu(capability)
    if device is None:
        return equation
    context = equation.ctx
    with context.manager:
        current: Any = jax.sharding.get_abstract_mesh()
        mesh = current.update(abstract_device=device)
        with jax.sharding.use_abstract_mesh(mesh):
            # JAX builds this context from the thread's current settings.
            return equation.replace(ctx=type(context)())


@cache
def _gpu(capability: str) -> object:
    kind = jax.sharding.AbstractDevice
    fields = {field.name for field in dataclasses.fields(kind)}
    if capability not in _KINDS or "platform" not in fields:
        return None  # 0.8 and 0.9
    # Mosaic reads the attribute as that of a device; `AbstractDevice` has no such field.
    described = dataclasses.make_dataclass(
        "AbstractGpu", [("compute_capability", str, "")], bases=(kind,), frozen=True
    )
    return described(_KINDS[capability], None, "gpu", capability)
