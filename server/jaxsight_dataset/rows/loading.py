"""Loads the module of a program, and makes its arguments."""

from __future__ import annotations

import hashlib
import linecache
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxsight_dataset.program import Argument, Array, RowProgram


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """The function of a program; `file` is the file name of its code."""

    function: Callable[..., object]
    file: str


def load(program: RowProgram) -> LoadedProgram:
    """Execute the module of a program, and return its function.

    Raise whatever the module raises.
    """
    digest = hashlib.blake2b(program.text.encode(), digest_size=8).hexdigest()
    name, file = f"program_{digest}", f"<program {digest}>"
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(True), file)
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look there for the names in annotations
    exec(compile(program.text, file, "exec"), vars(module))  # noqa: S102 - it is to be run
    return LoadedProgram(getattr(module, program.function), file)


def arguments(program: RowProgram, draw: int = 0) -> tuple[object, ...]:
    """Return the arguments of a program's call, with arrays of JAX.

    They depend on the parameters' names and types alone; each `draw` has other values.
    """
    return tuple(
        _filled(argument, f"{draw}/{name}") for name, argument in program.arguments.items()
    )


def _filled(argument: Argument, path: str) -> object:
    match argument:
        case Array():
            return _array(argument, path)
        case dict():
            return {name: _filled(item, f"{path}/{name}") for name, item in argument.items()}
        case tuple():
            return tuple(_filled(item, f"{path}/{at}") for at, item in enumerate(argument))
    return [_filled(item, f"{path}/{at}") for at, item in enumerate(argument)]


def _array(array: Array, path: str) -> jax.Array:
    seed = hashlib.blake2b(f"{path} {array}".encode(), digest_size=8).digest()
    chance = np.random.default_rng(int.from_bytes(seed, "big"))
    if array.values == "key":
        data = chance.integers(0, 2**32, (*array.shape, 2), np.uint32)
        keys: jax.Array = jax.random.wrap_key_data(jax.device_put(data), impl="threefry2x32")
        return keys
    dtype = jax.numpy.dtype(array.dtype)
    values = _values(array, dtype, chance)
    if np.issubdtype(dtype, np.complexfloating):
        values = values + 1j * _values(array, dtype, chance)
    made: jax.Array = jax.device_put(np.asarray(values).astype(dtype))
    return made


def _values(array: Array, dtype: Any, chance: np.random.Generator) -> Any:
    kind, _, limit = array.values.partition(":")
    shape = array.shape
    match kind:
        case "uniform":
            return chance.uniform(0.0, 1.0, shape)
        case "positive":
            return chance.uniform(0.5, 2.0, shape)
        case "unit":
            return chance.uniform(-0.9, 0.9, shape)
        case "integers":
            return chance.integers(0, int(limit), shape)
        case "booleans":
            return chance.integers(0, 2, shape).astype(bool)
        case "permutation":
            rows = np.broadcast_to(np.arange(shape[-1]), shape)
            return chance.permuted(rows, axis=-1)
        case "definite":
            factor = chance.normal(size=shape)
            product = factor @ np.swapaxes(factor, -1, -2) / shape[-1]
            return product + np.eye(shape[-1])
        case "triangular":
            factor = np.tril(chance.normal(size=shape), -1) / shape[-1]
            return factor + np.eye(shape[-1]) * chance.uniform(1.0, 2.0, (*shape[:-1], 1))
    if np.issubdtype(dtype, np.bool_):
        return chance.integers(0, 2, shape).astype(bool)
    if jax.numpy.issubdtype(dtype, np.integer):
        least = 0 if jax.numpy.issubdtype(dtype, np.unsignedinteger) else -9
        return chance.integers(least, 10, shape)
    return chance.normal(size=shape)
