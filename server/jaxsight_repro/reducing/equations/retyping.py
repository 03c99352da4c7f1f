"""Traces candidates again with other sizes and dtypes; what does not type-check is dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from jaxsight_repro.compat.kernel_equations import access, call_kernel
from jaxsight_repro.compat.mesh_equations import around, call_mapped, call_resized
from jaxsight_repro.compat.retyping import retyped
from jaxsight_repro.reducing.equations.candidates import Candidate, Keys, Value, of_program
from jaxsight_source.compat.inner import Inner, replaced
from jaxsight_source.compat.jaxpr_types import Atom, Aval, DType, Equation, Literal, Params, Var
from jaxsight_source.compat.pallas import kernel_call
from jaxsight_source.compat.parameters.shard_maps import shard_map
from jaxsight_source.compat.staging import Program, is_literal, opened, stage, with_inner

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
    """New sizes of axes, and new dtypes, by the old ones; and another mesh.

    Attributes:
        mesh_axes: the new sizes of axes of meshes, by name; an axis of size 0 is removed.
        shards: the new sizes inside of a `shard_map`, by the old ones; by default `sizes`.
    """

    sizes: Mapping[int, int] = field(default_factory=dict)
    dtypes: Mapping[DType, DType] = field(default_factory=dict)
    mesh_axes: Mapping[str, int] = field(default_factory=dict)
    shards: Mapping[int, int] | None = None

    def shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the new shape of an array."""
        return tuple(self.sizes.get(size, size) for size in shape)

    def aval(self, aval: Aval) -> Aval:
        """Return the new type of an array."""
        dtype = self.dtypes.get(aval.dtype, aval.dtype)
        return retyped(aval, self.shape(aval.shape), dtype, self.mesh_axes)

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

    def literal(self, atom: Literal) -> object:
        """Return the value of a literal, in its new dtype."""
        dtype = self.dtypes.get(atom.aval.dtype)
        return atom.val if dtype is None else np.asarray(atom.val).astype(dtype)[()]

    def params(self, params: Params) -> Params:
        """Return the parameters of an equation for the new types."""
        params = replaced(params, self._program)
        for name, value in params.items():
            if isinstance(value, np.dtype):
                params = {**params, name: self.dtypes.get(value, value)}
            elif name in _SIZES:
                params = {**params, name: self._sizes(value)}
        return params

    def _sizes(self, value: object) -> object:
        if isinstance(value, int) and not isinstance(value, bool):
            return self.sizes.get(value, value)
        return tuple(map(self._sizes, value)) if isinstance(value, tuple) else value

    def _program(self, inner: Inner) -> object:
        """Return an inner program for the new types of its inputs."""
        program, jaxpr = inner.program, inner.jaxpr
        if program.consts or jaxpr.constvars:
            raise _Untyped
        staged = self._staged(jaxpr.invars, jaxpr.eqns, jaxpr.outvars)
        if staged.consts:
            raise _Untyped
        return with_inner(inner.value, staged.jaxpr)

    def _staged(
        self, inputs: Sequence[Var], equations: Sequence[Equation], outputs: Sequence[Atom]
    ) -> Program:
        """Trace equations again at the new types of their inputs."""
        run = self._function(inputs, equations, outputs)
        return stage(run, [self.aval(var.aval) for var in inputs]).program

    def _function(
        self, inputs: Sequence[Var], equations: Sequence[Equation], outputs: Sequence[Atom]
    ) -> Callable[..., list[object]]:
        """Return a function that traces equations again, of arguments of the new types."""

        def run(*arguments: object) -> list[object]:
            values = dict(zip(map(id, inputs), arguments, strict=True))

            def read(atom: Atom) -> object:
                return self.literal(atom) if is_literal(atom) else values[id(atom)]

            for equation in equations:
                with around(equation.ctx, self.mesh_axes):
                    results = self._results(equation, [read(atom) for atom in equation.invars])
                values.update(zip(map(id, equation.outvars), results, strict=True))
            return [read(atom) for atom in outputs]

        return run

    def _results(self, equation: Equation, operands: Sequence[object]) -> Sequence[object]:
        if equation.primitive.name == "shard_map":
            program = opened(shard_map(equation.params).body)
            if program.consts or program.jaxpr.constvars:
                raise _Untyped
            sizes = self.sizes if self.shards is None else self.shards
            inside = replace(self, sizes=sizes)
            jaxpr = program.jaxpr
            body = inside._function(jaxpr.invars, jaxpr.eqns, jaxpr.outvars)
            return call_mapped(equation, body, self.mesh_axes, operands)
        if equation.primitive.name == "pallas_call":
            kernel = kernel_call(equation).body.jaxpr
            body = self._function(kernel.invars, kernel.eqns, kernel.outvars)
            return call_kernel(equation, body, self.sizes, operands)
        if equation.primitive.name in ("get", "swap"):
            return access(equation, self.sizes, operands)
        return call_resized(equation, self.params(equation.params), self.mesh_axes, operands)

    def candidate(self, candidate: Candidate) -> Candidate | None:
        """Return a candidate with the new types; None if it is not a program then."""
        try:
            program = self._staged(candidate.inputs, candidate.equations, candidate.outputs)
            smaller = of_program(program, [self.value(value) for value in candidate.arguments])
        except Exception:  # noqa: BLE001 - rules of abstract evaluation raise what they like
            return None
        return smaller if smaller.outputs and len(smaller.equations) else None
