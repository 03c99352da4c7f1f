"""Read a dumped program of any format: HLO, StableHLO, or a serialized `jax.export.Exported`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from jaxsight.files import reading
from jaxsight.interpreters.compat import dtypes
from jaxsight.repro.values import ConcreteValue
from jaxsight.sourcerizer.hlo import formats
from jaxsight.sourcerizer.hlo import read as read_hlo
from jaxsight.sourcerizer.hlo.reading import flattened
from jaxsight.sourcerizer.programs import contents
from jaxsight.sourcerizer.programs.contents import Content
from jaxsight.sourcerizer.stablehlo import StablehloProgram, UnreadableProgram
from jaxsight.sourcerizer.stablehlo import read as read_stablehlo

_SEEDS = (0, 1, 2, 42, 1234)
"""Of the keys of arguments: those that a repro writes as calls of `jax.random`, not as numbers."""


def read(path: Path) -> tuple[StablehloProgram, list[str]]:
    """Return the program of a file, and what is assumed about it, a sentence each.

    Raises:
        UnreadableProgram: it has no known format, or no JAX.
        OSError: it cannot be read.
    """
    content = reading.data(path)
    match contents.content_of(content):
        case Content.HLO:
            text = content.decode("utf-8", "replace")
            missing = formats.elided(text)
            notes = [f"The dump leaves out the numbers of constants ({missing}): ones here."]
            return read_hlo(text, ones=True), notes if missing else []
        case Content.PROTO:
            return read_hlo(content), []
        case Content.STABLEHLO:
            return read_stablehlo(flattened(content.decode("utf-8", "replace"))), []
        case Content.BYTECODE:
            return read_stablehlo(content), []
        case Content.EXPORTED:
            return read_stablehlo(contents.deserialized(content).mlir_module_serialized), []
        case _:
            raise UnreadableProgram("expected HLO, StableHLO or a serialized export")


def arguments(program: StablehloProgram) -> list[ConcreteValue]:
    """Return arguments for a program: drawn from the normal distribution, or counted from zero."""
    return [
        ConcreteValue(_numbers(var.aval.shape, var.aval.dtype, position))
        for position, var in enumerate(program.jaxpr.jaxpr.invars)
    ]


def _numbers(shape: Sequence[int], dtype: np.dtype, seed: int) -> np.ndarray:
    size = math.prod(shape)
    if dtypes.is_subtype(dtype, np.inexact):
        drawn = jax.random.normal(jax.random.key(_SEEDS[seed % len(_SEEDS)]), shape)
        return np.asarray(drawn.astype(dtype))
    if dtype == np.bool_:
        return np.ones(shape, dtype)
    # Small numbers, which are within bounds if they are positions.
    return np.asarray(np.arange(size).reshape(shape) % 4, dtype)
