"""Makes arrays smaller: each size, wherever it occurs, at once; and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from jaxsight_repro.compat.kernel_equations import access, call_kernel
from jaxsight_repro.compat.mesh_equations import call_mapped, call_resized, equation_context
from jaxsight_repro.compat.retyping import retyped
from jaxsight_repro.reducing.checker import Checker
from jaxsight_repro.reducing.equations.candidates import (
    Keys,
    Shrunk,
    Value,
    cheaper,
    cost,
    of_program,
)
from jaxsight_source.compat.inner import Inner, inner_jaxprs, replaced
from jaxsight_source.compat.jaxpr_types import Atom, Aval, DType, Equation, Literal, Params, Var
from jaxsight_source.compat.pallas import kernel_call
from jaxsight_source.compat.parameters import shard_map
from jaxsight_source.compat.staging import Program, is_literal, opened, stage, with_inner

_NARROWER = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64",
}  # fmt: skip


def shrink(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return a candidate of which no size can be made smaller."""
    sizes = _sizes_of(candidate)
    all_at_once = (
        Retyping({size: min(size, most) for size in sizes}).candidate(candidate)
        for most in (1, 2, 3, 4, 8)
        if sizes and sizes[0] > most
    )
    candidate = checker.first(cheaper(candidate, all_at_once)) or candidate
    done: set[int] = set()
    while remaining := [size for size in _sizes_of(candidate) if size not in done]:
        size = remaining[0]
        done.add(size)
        candidate = _smaller(candidate, size, checker)
    return candidate


def narrow(candidate: Shrunk, checker: Checker[Shrunk]) -> Shrunk:
    """Return a candidate with narrower dtypes."""
    dtypes = {np.dtype(old): np.dtype(new) for old, new in _NARROWER.items()}
    changes = [Retyping(dtypes=dtypes), *(Retyping(dtypes={o: n}) for o, n in dtypes.items())]
    tries = cheaper(candidate, (change.candidate(candidate) for change in changes))
    return checker.first(tries) or candidate


def _sizes_of(candidate: Shrunk) -> list[int]:
    """Return the sizes of axes in a candidate, largest first."""
    sizes = {size for var in candidate.inputs for size in _shape(var)}
    pending: list[Equation] = list(candidate.equations)
    while pending:
        equation = pending.pop()
        sizes.update(size for var in equation.outvars for size in _shape(var))
        if isinstance(length := equation.params.get("length"), int):
            sizes.add(length)
        if equation.primitive.name == "pallas_call":
            call = kernel_call(equation)
            sizes.update(size for size in call.grid if size is not None)
            sizes.update(size for block in call.blocks for size in block.sizes)
        for part in inner_jaxprs(equation):
            pending += part.jaxpr.eqns
    return sorted((size for size in sizes if size > 1), reverse=True)


def _shape(var: object) -> tuple[int, ...]:
    return tuple(getattr(getattr(var, "aval", None), "shape", ()))


def _smaller(candidate: Shrunk, size: int, checker: Checker[Shrunk]) -> Shrunk:
    """Make one size as small as possible."""
    tries = sorted({1, 2, 3, *(1 << power for power in range(2, size.bit_length()))})
    tries = [new for new in tries if new < size]
    for joint in (True, False):
        resized = partial(_resized, candidate, size, joint=joint)
        found = checker.first(map(resized, tries))
        if found is None:
            continue
        # Sizes between the one that was found and the next smaller one that was tried.
        reached = next(
            new
            for new in tries
            if (again := resized(new)) is not None and cost(again) == cost(found)
        )
        low = max((new for new in tries if new < reached), default=0)
        while reached - low > 1:
            middle = (low + reached) // 2
            closer = checker.first([resized(middle)])
            if closer is None:
                low = middle
            else:
                reached, found = middle, closer
        return found
    return candidate


def _resized(candidate: Shrunk, size: int, new: int, joint: bool) -> Shrunk | None:
    """Return a candidate with another size, and with multiples of it if `joint`."""
    sizes = {size: new}
    if joint:
        multiples = [each for each in _sizes_of(candidate) if each > size and each % size == 0]
        sizes |= {each: each // size * new for each in multiples}
        kernels = (e for e in candidate.equations if e.primitive.name == "pallas_call")
        for block in (block for each in kernels for block in kernel_call(each).blocks):
            for whole, part in zip(block.array.shape, block.sizes, strict=True):
                if part == size < whole:
                    sizes[whole] = -(-whole // part) * new  # as many blocks
    return next(cheaper(candidate, [Retyping(sizes).candidate(candidate)]), None)


_SIZES = frozenset((
    "axis_size", "batch_group_count", "feature_group_count", "fft_lengths", "k", "length",
    "limit_indices", "new_shape", "new_sizes", "shape", "sizes", "slice_sizes", "start_indices",
    "window_dimensions",
))  # fmt: skip
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
                with equation_context(equation.ctx, self.mesh_axes):
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

    def candidate(self, candidate: Shrunk) -> Shrunk | None:
        """Return a candidate with the new types; None if it is not a program then."""
        try:
            program = self._staged(candidate.inputs, candidate.equations, candidate.outputs)
            smaller = of_program(program, [self.value(value) for value in candidate.arguments])
        except Exception:  # noqa: BLE001 - rules of abstract evaluation raise what they like
            return None
        return smaller if smaller.outputs and len(smaller.equations) else None
