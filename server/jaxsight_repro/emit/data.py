"""Arguments as expressions: exact, by a rule where there is one, in the text where it is small.

Larger arrays are read from the `.npz` file beside the repro.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxsight.wire.meshes import Mesh
from jaxsight_repro import meshes
from jaxsight_repro.values import ConcreteValue, array_of, value_of
from jaxsight_source.errors import Unwritable
from jaxsight_source.text.exprs import subscript
from jaxsight_source.text.layout import flat
from jaxsight_source.values import constants, spelling

LARGEST_INLINE = 4 << 10
"""Bytes of an array that is written into the text, a choice; larger ones go to a file beside it."""

SEEDS = (0, 1, 2, 42, 1234)  # those that people write
_DRAWN = ("normal", "uniform")
_MOST_DRAWN = 1 << 22
"""Elements up to which an array is compared with random numbers of common seeds, a choice: drawing
more takes longer than a file of 16 MiB is worth."""


class Data:
    """The expressions of arguments, with the definitions and stored arrays that they need."""

    def __init__(self, *, has_unpack: bool = False) -> None:
        """Begin; `has_unpack` says that the module defines the function that unpacks arrays."""
        self._packed: list[str] = []
        self._meshes: dict[Mesh, str] = {}
        self._has_unpack = has_unpack
        self.stored: dict[str, np.ndarray] = {}
        """Arrays of the file beside the repro, by name."""

    def definitions(self) -> list[str]:
        """Return the lines that define compressed arrays, each of them once."""
        lines, self._packed = self._packed, []
        if not lines or self._has_unpack:
            return lines
        self._has_unpack = True
        return [*constants.UNPACK, "", "", *lines]

    def mesh_lines(self) -> list[str]:
        """Return the lines that define the meshes of arguments."""
        return [f"{name} = {meshes.text(mesh)}" for mesh, name in self._meshes.items()]

    def tree(self, argument: object, name: str) -> str:
        """Return the expression of a pytree of values, arrays and numbers.

        `name` begins the names of stored arrays.
        """
        match argument:
            case None:
                return "None"
            case dict():
                items = [
                    f"{key!r}: {self.tree(item, f'{name}_{position}')}"
                    for position, (key, item) in enumerate(argument.items())
                ]
                return f"{{{', '.join(items)}}}"
            case tuple() | list():
                parts = [
                    self.tree(item, f"{name}_{position}") for position, item in enumerate(argument)
                ]
                inside = ", ".join(parts)
                if isinstance(argument, list):
                    return f"[{inside}]"
                return f"({inside},)" if len(parts) == 1 else f"({inside})"
            case ConcreteValue():
                return self.expression(argument, name)
            case np.ndarray():  # arrays of JAX are pickled as NumPy's
                return self.expression(ConcreteValue(argument), name)
            case _:
                return self.expression(value_of(argument), name)

    def expression(self, value: ConcreteValue, name: str) -> str:
        """Return the expression of an argument; `name` names its array if it is stored."""
        if value.kind == "python":
            is_finite = not isinstance(value.data, float) or math.isfinite(value.data)
            return repr(value.data) if is_finite else f'float("{value.data}")'
        if value.kind == "numpy":
            return self._of_numpy(value.data, name)
        expression = self._of_array(value, name)
        if value.device:
            return f"jax.device_put({expression}, jax.devices()[{value.device}])"
        if value.mesh is None:
            return expression
        make_spec: Any = jax.sharding.PartitionSpec
        spec = flat(spelling.value(make_spec(*value.spec)))
        number = len(self._meshes)
        mesh = self._meshes.setdefault(value.mesh, f"mesh_{number}" if number else "mesh")
        sharding = f"jax.sharding.NamedSharding({mesh}, {spec})"
        return f"jax.device_put({expression}, {sharding})"

    def _of_array(self, value: ConcreteValue, name: str) -> str:
        if value.key:
            inner = self._of_array(ConcreteValue(value.data), name)
            return _key(value) or f"jax.random.wrap_key_data({inner}, impl={value.key!r})"
        array = array_of(ConcreteValue(value.data, weak=value.weak))
        short = constants.spelled(array)
        if short is not None:
            return flat(short)
        drawn = next(_drawn(array), None)
        if drawn is not None:
            return drawn
        return self._of_bytes(value.data, name, "jnp.asarray")

    def _of_numpy(self, data: np.ndarray, name: str) -> str:
        if not constants.is_numpy(data.dtype):
            return f"np.asarray({self._of_array(ConcreteValue(data), name)})"
        if data.ndim == 0:
            return f"np.{data.dtype.name}({data.item()!r})".replace("np.bool(", "np.bool_(")
        if not data.size:
            return f"np.zeros({data.shape!r}, np.{data.dtype.name})".replace(
                "np.bool)", "np.bool_)"
            )
        try:
            short = flat(constants.listed(data)) if data.size <= constants.FEW else None
        except Unwritable:
            short = None
        if short is not None:
            return short.replace("jnp.", "np.")
        if (data == data.flat[0]).all():
            return f"np.full({data.shape!r}, {data.flat[0].item()!r}, np.{data.dtype.name})"
        return self._of_bytes(data, name, "np.asarray")

    def _of_bytes(self, data: np.ndarray, name: str, make: str) -> str:
        is_kept = make == "jnp.asarray" or jax.numpy.asarray(data).dtype == data.dtype
        if data.nbytes <= LARGEST_INLINE and is_kept:  # JAX has 64-bit numbers as an option
            constant = f"_{name.upper()}"
            self._packed += constants.packed(constant, data)
            return constant if make == "jnp.asarray" else f"np.asarray({constant})"
        self.stored[name] = constants.plain(data)
        read: ast.expr = subscript(ast.Name("stored"), ast.Constant(name))
        text = flat(constants.read_back(read, data))
        return text if make == "jnp.asarray" else text.replace("jnp.asarray", make)


def _key(value: ConcreteValue) -> str | None:
    """Return the call of `jax.random.key` that makes a key, if its seed is a common one."""
    for seed in range(100) if value.data.ndim == 1 else ():
        key = jax.random.key(seed, impl=value.key)
        if np.array_equal(jax.random.key_data(key), value.data):
            is_default = str(jax.random.key_impl(jax.random.key(0))) == value.key
            return f"jax.random.key({seed}{'' if is_default else f', impl={value.key!r}'})"
    return None


def _drawn(array: jax.Array) -> Iterator[str]:
    """Yield the call that draws an array with a common seed, if there is one."""
    if array.dtype != jax.numpy.zeros(()).dtype or not constants.FEW < array.size <= _MOST_DRAWN:
        return
    for draw, seed in itertools.product(_DRAWN, SEEDS):
        numbers = getattr(jax.random, draw)(jax.random.key(seed), array.shape)
        if np.array_equal(numbers, array):
            yield f"jax.random.{draw}(jax.random.key({seed}), {array.shape!r})"


def inputs_function(values: Sequence[object], names: Sequence[str], data: Data) -> list[str]:
    """Return the lines of `inputs` and of what it needs; `data` gets stored arrays."""
    expressions = [data.tree(value, name) for value, name in zip(values, names, strict=True)]
    packed = data.definitions()
    lines = [*packed, "", "", "def inputs():"] if packed else ["def inputs():"]
    if any("stored[" in expression for expression in expressions):
        lines.append('    stored = np.load(Path(__file__).with_suffix(".npz"))')
    lines += [f"    {line}" for line in data.mesh_lines()]
    if not expressions:
        return [*lines, "    return ()"]
    lines.append("    return (")
    lines += [
        f"        {expression},  # {name}"
        for expression, name in zip(expressions, names, strict=True)
    ]
    return [*lines, "    )"]
