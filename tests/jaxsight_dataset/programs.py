"""Programs of the generator, as JAX sees them: with x64, as datasets are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight_dataset.program import Argument, Array, RowProgram


def defined(program: RowProgram) -> Any:
    """The function of a program."""
    module: dict[str, Any] = {"__name__": f"program_{program.number}"}
    exec(compile(program.text, f"<program {program.number}>", "exec"), module)
    return module[program.function]


def types(argument: Argument) -> Any:
    """An argument without its values."""
    match argument:
        case Array(dtype="key", shape=shape):
            return jax.eval_shape(lambda: jax.random.split(jax.random.key(0), shape))
        case Array(dtype=dtype, shape=shape):
            return jax.ShapeDtypeStruct(shape, jnp.dtype(dtype))
        case dict():
            return {name: types(item) for name, item in argument.items()}
    return type(argument)(types(item) for item in argument)


def values(argument: Argument, generator: np.random.Generator) -> Any:
    """An argument with random values by its rule."""
    match argument:
        case Array(dtype="key"):
            return jax.random.key(int(generator.integers(1000)))
        case Array(dtype=dtype):
            return jnp.asarray(numbers(argument, generator).astype(jnp.dtype(dtype)))
        case dict():
            return {name: values(item, generator) for name, item in argument.items()}
    return type(argument)(values(item, generator) for item in argument)


def numbers(array: Array, generator: np.random.Generator) -> np.ndarray:
    """Random numbers by the rule of an array."""
    shape = array.shape
    normal = generator.standard_normal(shape)
    rule, _, count = array.values.partition(":")
    match rule:
        case "normal":
            imaginary = generator.standard_normal(shape) if array.dtype.startswith("c") else 0
            return normal + 1j * imaginary if array.dtype.startswith("c") else normal
        case "uniform":
            return generator.random(shape)
        case "positive":
            return 0.5 + 1.5 * generator.random(shape)
        case "unit":
            return 1.8 * generator.random(shape) - 0.9
        case "integers":
            return generator.integers(0, int(count), shape)
        case "booleans":
            return generator.random(shape) < 0.5
        case "permutation":
            return generator.permuted(np.broadcast_to(np.arange(shape[-1]), shape), axis=-1)
        case "definite":
            return normal @ np.swapaxes(normal, -1, -2) / shape[-1] + np.eye(shape[-1])
        case "triangular":
            diagonal = 0.5 + 1.5 * generator.random(shape[:-1])
            return np.tril(0.5 * normal, -1) + diagonal[..., None] * np.eye(shape[-1])
    raise AssertionError(f"unknown rule {array.values!r}")


def traced(program: RowProgram) -> jax.extend.core.ClosedJaxpr:
    """The jaxpr of a program."""
    return jax.make_jaxpr(defined(program))(*map(types, program.arguments.values()))


def equations(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr and of those inside of it, with `None` where one ends."""
    for equation in jaxpr.eqns:
        yield equation
        for parameter in equation.params.values():
            for item in parameter if isinstance(parameter, tuple | list) else [parameter]:
                inner = getattr(item, "jaxpr", item)
                if hasattr(inner, "eqns"):
                    yield from equations(inner)
    yield None


def primitives(jaxpr: Any) -> Counter[str]:
    """How often each primitive occurs in a jaxpr."""
    return Counter(each.primitive.name for each in equations(jaxpr) if each is not None)


def structure(jaxpr: Any) -> tuple[object, ...]:
    """A jaxpr without names, shapes and numbers: its primitives, and how they are connected."""
    places: dict[Any, int] = {}
    parts: list[object] = []
    for equation in equations(jaxpr):
        if equation is None:
            parts.append(None)
            continue
        operands = [
            places.get(each, -1) if not hasattr(each, "val") else -2 for each in equation.invars
        ]
        parts += [equation.primitive.name, *operands]
        for each in equation.outvars:
            places[each] = len(places)
    return tuple(parts)
