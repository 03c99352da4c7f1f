"""A primitive as libraries define them."""

from __future__ import annotations

from typing import Any

from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import mlir

twice_p = Primitive("twice")
twice_p.def_impl(lambda x, *, factor: x * factor)
twice_p.def_abstract_eval(lambda x, *, factor: ShapedArray(x.shape, x.dtype))
mlir.register_lowering(twice_p, mlir.lower_fun(lambda x, *, factor: x * factor, False))


def twice(x: Any) -> Any:
    return twice_p.bind(x, factor=2)
