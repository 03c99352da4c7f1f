"""Kernels of Pallas that libraries ship: jax (`of_jax`), and other packages (`of_libraries`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxsight_source.options import Style
from tests.corpora.jaxsight_source.programs.registry import Call
from tests.jaxsight_source import gate

Maker = Callable[[], Call]
"""Makes the call of a kernel. With arguments that are no arrays it is only traced."""


def struct(*shape: int, dtype: Any = jnp.float32) -> Any:
    return jax.ShapeDtypeStruct(shape, dtype)


def named(makers: Sequence[Maker]) -> dict[str, Maker]:
    return {make.__name__: make for make in makers}


def written(call: Call, style: Style) -> gate.Passed:
    """Write a kernel, and hold its text to what the gate asks for; nothing may be passed in."""
    passed = gate.check(call, gradient=False, style=style)
    if "passed by the caller" in passed.text:
        raise gate.Fails("the caller has to pass something")
    return passed
