"""Programs for compilers: what a tracer sends, made here by JAX's public ways."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxlib.mlir.dialects import stablehlo


def program(function: Callable[..., Any], *arguments: Any) -> str:
    """A portable artifact, in base64."""
    module: Any = jax.jit(function).lower(*arguments).compiler_ir("stablehlo")
    artifact = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version(), True)
    return base64.b64encode(artifact).decode()


def a_sum() -> str:
    """`(sin(x) + 1).sum()` of 1024 numbers."""
    return program(lambda x: (jnp.sin(x) + 1).sum(), jax.ShapeDtypeStruct((1024,), "float32"))
