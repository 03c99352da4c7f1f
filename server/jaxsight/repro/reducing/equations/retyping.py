"""Traces candidates again with other sizes and dtypes; what does not type-check is dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxsight.interpreters.compat.equations import bind
from jaxsight.interpreters.compat.jaxpr_types import Atom, Aval, DType, Equation, Params
from jaxsight.interpreters.compat.staging import (
    Program,
    is_jaxpr,
    is_literal,
    opened,
    stage,
    with_inner,
)
from jaxsight.repro.compat.retyping import retyped
from jaxsight.repro.reducing.equations.candidates import Candidate, Keys, Value, of_program

_SIZES = frozenset(
    (
        "axis_size",
        "batch_group_count",
        "feature_group_count",
        "fft_lengths",
        "k",
        "length",
        "limit_indices",
        "new_shape",
        "new_sizes",
        "shape",
        "sizes",
        "slice_sizes",
        "start_indices",
        "window_dimensions",
    )
)
"""Parameters that hold sizes of axes, or positions on them."""


class _Untyped(Exception):
    """A program cannot be traced with other types."""


@dataclass(frozen=True, slots=True)
class Retyping:
    """New sizes of axes, and new dtypes, by the old ones."""

    sizes: Mapping[int, int] = field(default_factory=dict)
    dtypes: Mapping[Any, DType] = field(default_factory=dict)

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the new shape of an array."""
        return tuple(self.sizes.get(size, size) for size in shape)

    def aval(self, aval: Aval) -> Aval:
        """Return the new type of an array."""
        dtype = self.dtypes.get(aval.dtype, aval.dtype)
        return retyped(aval, self.shape(aval.shape), dtype)

    def value(self, value: Value) -> Value:
        """Return the beginning of an array, in its new dtype."""
        if isinstance(value, Keys):
            shape = (*self.shape(value.data.shape[:-1]), value.data.shape[-1])
            return Keys(value.data[tuple(map(slice, shape))], value.impl)
        part = value[tuple(map(slice, self.shape(value.shape)))]
        dtype = self.dtypes.get(value.dtype)
        if dtype is None:
            return part
        with np.errstate(all="ignore"):
            return np.asarray(part.astype(dtype))

    def literal(self, atom: Any) -> Any:
        """Return the value of a literal, in its new dtype."""
        dtype = self.dtypes.get(atom.aval.dtype)
        return atom.val if dtype is None else np.asarray(atom.val).astype(dtype)[()]

    def params(self, params: Params) -> Params:
        """Return the parameters of an equation for the new types."""
        return {name: self._parameter(name, value) for name, value in params.items()}

    def _parameter(self, name: str, value: Any) -> Any:
        if is_jaxpr(value):
            return self._program(value)
        if isinstance(value, (tuple, list)) and any(is_jaxpr(part) for part in value):
            return tuple(self._program(part) if is_jaxpr(part) else part for part in value)
        if isinstance(value, np.dtype):
            return self.dtypes.get(value, value)
        return self._sizes(value) if name in _SIZES else value

    def _sizes(self, value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int):
            return self.sizes.get(value, value)
        return tuple(map(self._sizes, value)) if isinstance(value, tuple) else value

    def _program(self, jaxpr: Any) -> Any:
        """Return an inner program for the new types of its inputs."""
        program = opened(jaxpr)
        if program.consts or program.jaxpr.constvars:
            raise _Untyped
        staged = stage(self.function(program), [self.aval(v.aval) for v in program.jaxpr.invars])
        if staged.program.consts:
            raise _Untyped
        return with_inner(jaxpr, staged.program.jaxpr)

    def function(self, program: Program) -> Any:
        """Return a program without constants as a function that binds its equations anew."""

        def run(*arguments: object) -> list[object]:
            values = dict(zip(map(id, program.jaxpr.invars), arguments, strict=True))
            return self._run(program.jaxpr.eqns, program.jaxpr.outvars, values)

        return run

    def _run(
        self, equations: Sequence[Equation], outputs: Sequence[Atom], values: dict[int, Any]
    ) -> list[object]:
        def read(atom: Atom) -> Any:
            return self.literal(atom) if is_literal(atom) else values[id(atom)]

        for equation in equations:
            renewed = equation.replace(params=self.params(equation.params))
            with equation.ctx.manager:
                results = bind(renewed, [read(atom) for atom in equation.invars])
            values.update(zip(map(id, equation.outvars), results, strict=True))
        return [read(atom) for atom in outputs]

    def candidate(self, candidate: Candidate) -> Candidate | None:
        """Return a candidate with the new types; None if it is not a program then."""

        def run(*arguments: object) -> list[object]:
            values = dict(zip(map(id, candidate.inputs), arguments, strict=True))
            return self._run(candidate.equations, candidate.outputs, values)

        try:
            staged = stage(run, [self.aval(var.aval) for var in candidate.inputs])
            arguments = [self.value(value) for value in candidate.arguments]
            smaller = of_program(staged.program, arguments)
        except Exception:  # noqa: BLE001 - rules of abstract evaluation raise what they like
            return None
        return smaller if smaller.outputs and len(smaller.equations) else None
