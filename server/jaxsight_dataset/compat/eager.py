"""Run functions eagerly, each operation in NumPy where it can be.

Compiling an operation takes XLA 10 ms, and NumPy computes it independently of XLA.

Applies to JAX 0.8 to 0.12. Private API used: the attribute `impl` of primitives, which JAX calls
when an operation is run eagerly (`jax/_src/core.py`, `EvalTrace.process_primitive`); `add_any_p`,
which `jax.extend.core.primitives` lacks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.ad_util import add_any_p
from jax.extend.core import primitives

Operation: TypeAlias = Callable[..., np.ndarray[Any, Any]]
"""Takes and returns arrays of NumPy, and has the parameters of a primitive."""


class NotInNumpy(Exception):
    """NumPy does not have an operation for these operands."""


@contextlib.contextmanager
def replaced(operations: Mapping[str, Operation]) -> Iterator[None]:
    """Run these operations, and what they are part of, without XLA where operands allow it.

    Functions that JAX itself jits are run operation by operation, too, as are loops.
    """
    usual = {name: (_primitive(name), _primitive(name).impl) for name in operations}
    try:
        for name, (primitive, impl) in usual.items():
            primitive.impl = _tried(operations[name], impl)
        with jax.disable_jit(), np.errstate(all="ignore"):
            yield
    finally:
        for primitive, impl in usual.values():
            primitive.impl = impl


def _primitive(name: str) -> Any:
    return add_any_p if name == "add_any" else getattr(primitives, f"{name}_p")


def _tried(operation: Operation, usual: Callable[..., object]) -> Callable[..., object]:
    def impl(*operands: object, **parameters: object) -> object:
        if not all(map(_is_plain, operands)):
            return usual(*operands, **parameters)
        try:
            return jax.device_put(operation(*map(np.asarray, operands), **parameters))
        except NotInNumpy:
            return usual(*operands, **parameters)

    return impl


def _is_plain(operand: object) -> bool:
    """Return whether an operand is an array of numbers whose dtype does not give way to others."""
    if isinstance(operand, jax.Array):
        dtype: object = operand.dtype
        is_usual = isinstance(dtype, np.dtype) and (dtype.kind in "biufc" or dtype == jnp.bfloat16)
        return is_usual and not operand.aval.weak_type
    return isinstance(operand, np.ndarray | np.generic)
