"""Compare two traced functions by running them: the answer to `Compare`.

Both run on this machine's CPU with the same random inputs, and their results are compared, and
their gradients if both have them.
This is the only module of the tracer that runs traced programs: never those that call back into
Python or have effects, and never those that are too large.
Captured arrays are arguments here, so that nothing is folded at compile time.
A function that cannot be traced is called with values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.interpreters.compat import avals
from jaxsight.tracer.comparison.closeness import Incomparable, agree, wide
from jaxsight.tracer.comparison.two_ways import Miscompiled, TwoWays, names_of
from jaxsight.tracer.compat import in_place, jaxprs
from jaxsight.tracer.function_lookup import find
from jaxsight.tracer.job import Job
from jaxsight.tracer.states import stateful
from jaxsight.tracer.states.stateful import Outcome, Stateful
from jaxsight.wire.messages.replies import Compared
from jaxsight.wire.messages.requests import Compare

LARGEST = 512 << 20
"""Maximum bytes of the results of an equation, or of all inputs and results, of a program to run.
"""

_BELOW = 0.1
"""The tolerance applies to a number's magnitude plus this fraction of the root mean square, as
numbers may cancel.
"""
_BELOW_SUMS = 4.0
"""The fraction for programs with FFTs, and where matrices are multiplied in another way.

Each result is a sum of many numbers, with an error of the magnitude of the largest.
"""
_BELOW_SOLVED = 100.0
"""The fraction where systems are solved in another way: a thousandth of the root mean square.

Their gradients cancel, and a wrong one is far off.
"""

_TIMES = 4
"""How often each kind of random inputs is tried to reach every branch."""

_CALLBACKS = ("callback", "infeed", "outfeed", "print", "io_")

_SOLVES = frozenset({"lu", "cholesky", "triangular_solve", "qr", "eigh", "svd"})
"""Primitives whose rounding errors grow with the condition of a matrix."""
_PRODUCTS = frozenset({"dot_general"})
"""Primitives that multiply infinite numbers by the zeros of a matrix, which gives NaN."""

_ORDERS = frozenset({"sort", "top_k", "argmax", "argmin"})
"""Primitives that choose one of equal values, and have a place for NaN."""

Draw = Callable[[np.random.Generator, Any], Any]


@dataclass(frozen=True, eq=False)
class _Run:
    """A program to run: its jaxpr, its captured arrays, the names and types of its inputs."""

    jaxpr: Any
    constants: tuple[Any, ...]
    names: tuple[str, ...]

    @staticmethod
    def of(traced: Any) -> _Run:
        opened = jaxprs.open_jaxpr(traced.jaxpr)
        info = opened.debug_info
        names = tuple(str(name or "") for name in getattr(info, "arg_names", None) or ())
        if len(names) != len(opened.invars):
            names = tuple(map(str, range(len(opened.invars))))
        return _Run(opened, tuple(getattr(traced.jaxpr, "consts", ())), names)

    @property
    def inputs(self) -> list[Any]:
        return [var.aval for var in self.jaxpr.invars]

    @property
    def outputs(self) -> list[Any]:
        return [var.aval for var in self.jaxpr.outvars]

    def __call__(self, constants: Sequence[Any], *args: Any) -> list[Any]:
        return list(jax.core.eval_jaxpr(self.jaxpr, constants, *args))


def compare(job: Job[Compare]) -> Compared:
    """Compare two functions by running both; the first is called with values if it has a slice.

    Raises:
        UserError: a trace is no longer kept, or the first function's inputs are invalid.
    """
    request = job.request
    job.begin("compare")
    if request.run is None:
        before = job.traces.of(request.trace).seen
        return compared(request, before, job.traces.of(request.other).seen)
    module = job.module
    after = job.traces.of(request.other)
    function = find(module.namespace, request.run.function)
    with module.recorder.tracing():
        inputs = module.evaluator.inputs(module.trace, function, module.namespace)
    call = stateful.with_values(function, inputs)
    return compared_with_values(request, call, after.seen, after.outcome)


def compared(request: Compare, before: Any, after: Any) -> Compared:
    """Run both functions several times and compare them.

    Errors of the changed function and programs that cannot be compared count as differences.
    Each form is compiled in two ways, which must agree; if those of the original certainly do not,
    `miscompiled` reports it.
    """
    try:
        return _compared(request, _Run.of(before), _Run.of(after))
    except Miscompiled as error:
        return Compared(request.id, False, str(error), miscompiled=error.finding)
    except Incomparable as error:
        return Compared(request.id, False, str(error))


def _compared(request: Compare, before: _Run, after: _Run) -> Compared:
    for run in (before, after):
        _check(run)
    _same_types(before, after)
    device = jax.local_devices(backend="cpu")[0]
    exact, nonfinite, gradients = True, [0, 0], 0
    solves = _of(_SOLVES, before) != _of(_SOLVES, after)
    multiplies = _of(_PRODUCTS, before) != _of(_PRODUCTS, after)
    below = _BELOW_SOLVED if solves else _BELOW_SUMS if multiplies else _below(before)
    sorts = _of(_ORDERS, before) != _of(_ORDERS, after)
    draws = _ORDINARY if solves or sorts else _FINITE if multiplies else _DRAWS
    with jax.default_device(device):
        terms, terms_after = _terms(before), _terms(after)
        run_before = TwoWays(before, below, terms, reported=True)
        run_after = TwoWays(after, below, terms_after)
        grad_before = TwoWays(_gradient(before), below, terms, reported=True)
        grad_after = TwoWays(_gradient(after), below, terms_after)
        differentiable = _differentiable(before) and _traces(grad_before.usual, before)
        if differentiable and not _traces(grad_after.usual, after):
            raise Incomparable("the changed function has no gradient, but the original has one")
        for seed, draw in enumerate(draws):
            given = _drawn(before, draw, np.random.default_rng(seed))
            if solves:
                given = {name: _well_conditioned(value) for name, value in given.items()}
            ordinary = draw in _ORDINARY
            results = names_of(len(before.outputs))
            first = run_before(results, before.constants, *given.values(), ordinary=ordinary)
            others = _matched(before, after, given)
            second = run_after(results, after.constants, *others, ordinary=ordinary)
            for result, one, other in zip(results, first, second, strict=True):
                exact &= agree(result, one, other, below)
            if not differentiable or draw is _unusual:
                continue
            slopes_before = grad_before(
                _slopes(before), before.constants, *given.values(), ordinary=ordinary
            )
            slopes = dict(zip(given, slopes_before, strict=True))
            slopes_after = grad_after(_slopes(after), after.constants, *others, ordinary=ordinary)
            for (name, aval), slope in zip(_named(after), slopes_after, strict=True):
                if name not in slopes or not _is_float(aval):
                    continue
                one, other = np.asarray(slopes[name]), np.asarray(slope)
                nonfinite[0] += int((~np.isfinite(wide(one))).sum())
                nonfinite[1] += int((~np.isfinite(wide(other))).sum())
                # A NaN may become a number, but a number may not change.
                kept = np.isfinite(wide(one))
                exact &= agree(f"the gradient of {name}", one[kept], other[kept], below)
            gradients += 1
    words = "equal to the bit" if exact else "equal within rounding"
    return Compared(request.id, True, words, exact, gradients, (nonfinite[0], nonfinite[1]))


def compared_with_values(
    request: Compare, call: Stateful, after: Any, outcome: Outcome
) -> Compared:
    """Compare a function that cannot be traced, by calling it one operation at a time.

    Arrays can be changed in place meanwhile, as those of NumPy can. Its own errors make it
    incomparable.
    """
    try:
        return _compared_with_values(request, call, _Run.of(after), outcome)
    except Incomparable as error:
        return Compared(request.id, False, str(error))


def _compared_with_values(
    request: Compare, call: Stateful, after: _Run, outcome: Outcome
) -> Compared:
    _check(after)
    leaves, structure = jax.tree_util.tree_flatten((call.args, call.kwargs))
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if kinds != [(aval.shape, aval.dtype) for aval in after.inputs]:
        raise Incomparable("it takes different arguments")
    exact = True
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        below = _below(after)
        run, results = TwoWays(after, below, _terms(after)), names_of(len(after.outputs))
        for seed in range(_TIMES * len(_DRAWS)):
            draw = _DRAWS[seed % len(_DRAWS)]
            given = _drawn(after, draw, np.random.default_rng(seed))
            args, kwargs = jax.tree_util.tree_unflatten(structure, given.values())
            try:
                with jax.disable_jit(), in_place.changeable():
                    found = [_own(each) for each in call(*args, **kwargs)]
            except Exception as error:
                raise Incomparable(f"it also fails when called with values: {error}") from error
            second = outcome.in_order(
                run(results, after.constants, *given.values(), ordinary=False)
            )
            if len(found) != len(second):
                raise Incomparable("it returns a different number of results")
            for index, (one, other) in enumerate(zip(found, second, strict=True)):
                if np.shape(one) != other.shape:
                    raise Incomparable(f"result {index} has a different shape")
                given_back = jnp.asarray(one).astype(other.dtype)
                exact &= agree(f"result {index}", given_back, other, below)
    words = "equal to the bit" if exact else "equal within rounding"
    return Compared(request.id, True, words, exact)


def _own(value: Any) -> Any:
    """Return a copy of a result, which later changes in place do not reach."""
    return jnp.array(value, copy=True) if isinstance(value, jax.Array) else np.array(value)


def _check(run: _Run) -> None:
    effects = getattr(run.jaxpr, "effects", None)
    if effects:
        raise Incomparable("it has effects, so it is not run")
    total = sum(map(avals.size, [*run.inputs, *run.outputs]))
    if total > LARGEST:
        raise Incomparable("its inputs and results are too large to run it for a comparison")
    for equation in _equations(run.jaxpr):
        name = equation.primitive.name
        if any(word in name for word in _CALLBACKS):
            raise Incomparable(f"it has a {name}, so it is not run")
        if sum(avals.size(var.aval) for var in equation.outvars) > LARGEST:
            raise Incomparable("it creates arrays that are too large for a comparison")


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for part in jaxprs.inner(equation):
            yield from _equations(part.jaxpr)


def _same_types(before: _Run, after: _Run) -> None:
    def kinds(run: _Run) -> list[tuple[Any, Any]]:
        return [(aval.shape, aval.dtype) for aval in run.outputs]

    if kinds(before) != kinds(after):
        was, now = (", ".join(map(avals.text, run.outputs)) or "nothing" for run in (before, after))
        raise Incomparable(f"it returns {now} instead of {was}")


def _terms(run: _Run) -> int:
    """Return the size of the largest value, an upper bound of the terms of a sum."""
    steps = (var.aval for equation in _equations(run.jaxpr) for var in equation.outvars)
    return max(
        (math.prod(aval.shape) for aval in [*run.inputs, *steps] if hasattr(aval, "shape")),
        default=1,
    )


def _slopes(run: _Run) -> list[str]:
    return [f"the gradient of {name}" for name in run.names]


def _named(run: _Run) -> list[tuple[str, Any]]:
    return list(zip(run.names, run.inputs, strict=True))


def _matched(before: _Run, after: _Run, given: dict[str, Any]) -> list[Any]:
    """Return the same inputs for the changed program.

    For inputs that only it has, these are captured arrays of the original with the same type.
    """
    left = {id(each): each for each in before.constants}
    found = []
    for name, aval in _named(after):
        value = given.get(name)
        if value is None:
            value = next((each for each in left.values() if _fits(each, aval)), None)
            if value is None:
                raise Incomparable(f"the new argument {name} has no known value")
            left.pop(id(value))
            value = jnp.asarray(value, aval.dtype)
        if (value.shape, value.dtype) != (aval.shape, aval.dtype):
            raise Incomparable(f"{name} has a different type now")
        found.append(value)
    return found


def _fits(value: Any, aval: Any) -> bool:
    shape = getattr(value, "shape", None)
    return bool(shape == aval.shape and jnp.asarray(value).dtype == aval.dtype)


def _gradient(run: _Run) -> Callable[..., list[Any]]:
    """Return the gradient of the sum of all floating-point results, zeros for other inputs."""

    def gradient(constants: Sequence[Any], *args: Any) -> list[Any]:
        chosen = [index for index, aval in enumerate(run.inputs) if _is_float(aval)]

        def total(floats: Sequence[Any]) -> Any:
            whole = list(args)
            for index, value in zip(chosen, floats, strict=True):
                whole[index] = value
            parts = [
                jnp.sum(jnp.real(result).astype(jnp.float32))
                for result in run(constants, *whole)
                if _is_float(result)
            ]
            return sum(parts[1:], parts[0])

        slopes = jax.grad(total)([args[index] for index in chosen])
        found: list[Any] = [jnp.zeros(())] * len(args)
        for index, slope in zip(chosen, slopes, strict=True):
            found[index] = slope
        return found

    return gradient


def _differentiable(run: _Run) -> bool:
    return any(map(_is_float, run.inputs)) and any(map(_is_float, run.outputs))


def _traces(gradient: Any, run: _Run) -> bool:
    try:
        gradient.trace(run.constants, *(_struct(aval) for aval in run.inputs))
    except Exception:  # noqa: BLE001 - derivative rules may be the user's
        return False
    return True


def _struct(aval: Any) -> Any:
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)  # type: ignore[no-untyped-call]


def _is_float(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.floating))


def _below(run: _Run) -> float:
    """Return the fraction of the root mean square that is added to magnitudes, for a program."""
    has_fft = any(equation.primitive.name == "fft" for equation in _equations(run.jaxpr))
    return _BELOW_SUMS if has_fft else _BELOW


def _drawn(run: _Run, draw: Draw, generator: np.random.Generator) -> dict[str, Any]:
    return {name: _array(aval, draw, generator) for name, aval in _named(run)}


def _of(primitives: frozenset[str], run: _Run) -> list[tuple[str, list[Any]]]:
    """Return the equations of some primitives in a program, with the shapes of their operands."""
    return [
        (equation.primitive.name, [var.aval.shape for var in equation.invars])
        for equation in _equations(run.jaxpr)
        if equation.primitive.name in primitives
    ]


def _well_conditioned(value: Any) -> Any:
    """Return a square matrix whose diagonal outweighs the rest.

    For such matrices two ways to solve a system agree within rounding. Both are rational functions
    of the matrix: where they agree here, they do everywhere.
    """
    if value.ndim < 2 or value.shape[-1] != value.shape[-2]:
        return value
    if not jnp.issubdtype(value.dtype, jnp.inexact):
        return value
    rest = jnp.max(jnp.sum(jnp.abs(value), axis=-1)).astype(value.dtype)
    return value + 2 * rest * jnp.eye(value.shape[-1], dtype=value.dtype)


def _array(aval: Any, draw: Draw, generator: np.random.Generator) -> Any:
    dtype, shape = aval.dtype, aval.shape
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        count = math.prod(shape)
        seeds = generator.integers(0, 1 << 31, size=count)
        keys = [jax.random.key(int(seed), impl=dtype._impl) for seed in seeds]
        return jnp.stack(keys).reshape(shape) if shape else keys[0]
    if dtype == jnp.bool_:
        return jnp.asarray(generator.integers(0, 2, size=shape) == 1)
    if jnp.issubdtype(dtype, jnp.integer):
        low = 0 if jnp.issubdtype(dtype, jnp.unsignedinteger) or draw is _normal else -3
        return jnp.asarray(generator.integers(low, 8, size=shape), dtype)
    numbers = draw(generator, shape)
    if jnp.issubdtype(dtype, jnp.complexfloating):
        whole = np.empty(shape, np.complex128)
        whole.real, whole.imag = numbers, draw(generator, shape)
        return jnp.asarray(whole, dtype)
    return jnp.asarray(numbers, dtype)


def _normal(generator: np.random.Generator, shape: Any) -> Any:
    return generator.normal(size=shape)


def _positive(generator: np.random.Generator, shape: Any) -> Any:
    return generator.uniform(0.1, 3.0, size=shape)


def _special(generator: np.random.Generator, shape: Any) -> Any:
    """Draw numbers at which functions often have special cases."""
    return generator.choice([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 100.0, 1e-6], size=shape)


def _unusual(generator: np.random.Generator, shape: Any) -> Any:
    return generator.choice([0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.3], size=shape)


_DRAWS: tuple[Draw, ...] = (_normal, _positive, _special, _unusual)
_FINITE = (_normal, _positive, _special)
_ORDINARY = (_normal, _positive)
"""Draws without special cases: differences are not caused by NaN or by one-sided limits."""
