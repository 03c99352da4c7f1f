"""Run traced functions: to compare two of them (`Compare`), or to measure them (`Measure`).

Functions that are compared run on this machine's CPU with the same random inputs, and their results
are compared, and their gradients if both have them.
Never those run that call back into Python or have effects, and never those that are too large
(`comparison/runnable_program.py`).
A function that cannot be traced is called with values.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.stages import Traced

from jaxsight.measuring.programs import CannotMeasure, MeasuredProgram, compile_program, measured
from jaxsight.tracer.calls import stateful_traces
from jaxsight.tracer.calls.stateful_call import Outcome, StatefulCall
from jaxsight.tracer.comparison import runnable_program as programs
from jaxsight.tracer.comparison.runnable_program import DRAWS, RunnableProgram, equations_of, terms
from jaxsight.tracer.comparison.two_ways import Incomparable, TwoWays, agree, names_of, wide
from jaxsight.tracer.compat import in_place_updates, lowering
from jaxsight.tracer.failures import refusal
from jaxsight.tracer.job import JaxTrace, Job, under
from jaxsight.wire.messages.measuring import Measured
from jaxsight.wire.messages.replies import Compared
from jaxsight.wire.messages.requests import Compare, Measure
from jaxsight_source.compat.inner import walk
from jaxsight_source.jaxprs.arguments import Draw

_BELOW = 0.1
"""The tolerance applies to a number's magnitude plus this fraction of the root mean square, as
numbers may cancel. A choice, as are those below: less rejects fixes for rounding errors, more
accepts errors in small numbers.
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
"""How often each kind of random inputs is tried; rarer branches may never be compared."""

_SOLVES = frozenset({"lu", "cholesky", "triangular_solve", "qr", "eigh", "svd"})
"""Primitives whose rounding errors grow with the condition of a matrix."""
_PRODUCTS = frozenset({"dot_general"})
"""Primitives that multiply infinite numbers by the zeros of a matrix, which gives NaN."""

_ORDERS = frozenset({"sort", "top_k", "argmax", "argmin"})
"""Primitives that choose one of equal values, and have a place for NaN."""


def compare(job: Job[Compare]) -> Compared:
    """Compare two functions by running both; the first is called with values if it has a slice.

    Raises:
        UserError: a trace is no longer kept, or the first function's inputs are invalid.
    """
    request = job.request
    job.begin("compare")
    try:
        if request.run is None:
            before = job.traces.of(request.trace).shown
            return _compared(request.id, before, job.traces.of(request.other).shown)
        after = job.traces.of(request.other)
        with job.module.called() as (function, inputs):
            call = stateful_traces.with_values(function, inputs)
            return _compared_with_values(request.id, call, after.shown, after.outcome)
    except Incomparable as error:
        return Compared(request.id, False, str(error))


def _compared(id: int, before: Traced, after: Traced) -> Compared:
    """Run both functions several times and compare them.

    Errors of the changed function and programs that cannot be compared count as differences.
    Each form is compiled in two ways, which must agree.
    """
    first, second = map(RunnableProgram.of, (before, after))
    for program in (first, second):
        programs.check(program)
    programs.check_same_types(first, second)
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        comparison = _Comparison(first, second)
        for seed, draw in enumerate(comparison.draws):
            comparison.run(draw, seed)
    exact, gradients, nonfinite = comparison.exact, comparison.gradients, comparison.nonfinite
    return Compared(id, True, _words(exact), exact, gradients, nonfinite)


def _words(exact: bool) -> str:
    return "equal to the bit" if exact else "equal within rounding"


class _Comparison:
    """Two programs, which are run with the same inputs."""

    def __init__(self, before: RunnableProgram, after: RunnableProgram) -> None:
        self.exact = True
        """Whether all results so far are equal to the bit."""
        self.gradients = 0
        """Number of runs of the gradients."""
        self.nonfinite = 0, 0
        """Number of elements of gradients that are not finite, before and after the change."""
        self._before, self._after = before, after
        self._solves = _differ(_SOLVES, before, after)
        multiplies = _differ(_PRODUCTS, before, after)
        sorts = _differ(_ORDERS, before, after)
        below = _BELOW_SUMS if multiplies else below_of(before)
        self._below = _BELOW_SOLVED if self._solves else below
        draws = programs.FINITE if multiplies else DRAWS
        self.draws = programs.ORDINARY if self._solves or sorts else draws
        self._run_before, self._run_after = (
            TwoWays(program, self._below, terms(program)) for program in (before, after)
        )
        self._grad_before, self._grad_after = (
            TwoWays(programs.gradient_of(program), self._below, terms(program))
            for program in (before, after)
        )
        self._differentiable = programs.is_differentiable(before) and programs.is_traceable(
            self._grad_before.usual, before
        )
        if self._differentiable and not programs.is_traceable(self._grad_after.usual, after):
            raise Incomparable("the changed function has no gradient, but the original has one")

    def run(self, draw: Draw, seed: int) -> None:
        """Compare the results for random inputs, and the gradients if both have them.

        Raises:
            Incomparable: they differ.
        """
        before, after = self._before, self._after
        inputs = programs.drawn(before, draw, np.random.default_rng(seed))
        if self._solves:
            inputs = {name: programs.well_conditioned(value) for name, value in inputs.items()}
        names = names_of(len(before.outputs))
        first = self._run_before(names, before.constants, *inputs.values())
        inputs_after = programs.matched(before, after, inputs)
        second = self._run_after(names, after.constants, *inputs_after)
        for name, old, new in zip(names, first, second, strict=True):
            self.exact &= agree(name, old, new, self._below)
        if self._differentiable and draw is not programs.unusual:
            self._run_gradients(inputs, inputs_after)
            self.gradients += 1

    def _run_gradients(self, inputs: dict[str, jax.Array], inputs_after: list[jax.Array]) -> None:
        before, after = self._before, self._after
        slopes_before = self._grad_before(
            programs.slope_names(before), before.constants, *inputs.values()
        )
        slopes = dict(zip(inputs, slopes_before, strict=True))
        slopes_after = self._grad_after(programs.slope_names(after), after.constants, *inputs_after)
        for (name, aval), slope in zip(after.named_inputs, slopes_after, strict=True):
            if name not in slopes or not programs.is_float(aval):
                continue
            old, new = np.asarray(slopes[name]), np.asarray(slope)
            finite, finite_after = np.isfinite(wide(old)), np.isfinite(wide(new))
            first, second = self.nonfinite
            self.nonfinite = first + int((~finite).sum()), second + int((~finite_after).sum())
            # A NaN may become a number, but a number may not change.
            self.exact &= agree(f"the gradient of {name}", old[finite], new[finite], self._below)


def _differ(primitives: frozenset[str], before: RunnableProgram, after: RunnableProgram) -> bool:
    """Return whether two programs have other equations of some primitives."""
    return equations_of(primitives, before) != equations_of(primitives, after)


def _compared_with_values(
    id: int, call: StatefulCall, traced_after: Traced, outcome: Outcome
) -> Compared:
    """Compare a function that cannot be traced, by calling it one operation at a time.

    Arrays can be changed in place meanwhile, as those of NumPy can. Its own errors make it
    incomparable.
    """
    after = RunnableProgram.of(traced_after)
    programs.check(after)
    leaves, structure = jax.tree_util.tree_flatten((call.args, call.kwargs))
    kinds = [(leaf.shape, leaf.dtype) for leaf in leaves]
    if kinds != [(aval.shape, aval.dtype) for aval in after.inputs]:
        raise Incomparable("it takes different arguments")
    exact = True
    with jax.default_device(jax.local_devices(backend="cpu")[0]):
        below = below_of(after)
        run, results = TwoWays(after, below, terms(after)), names_of(len(after.outputs))
        for seed in range(_TIMES * len(DRAWS)):
            draw = DRAWS[seed % len(DRAWS)]
            inputs = programs.drawn(after, draw, np.random.default_rng(seed))
            args, kwargs = jax.tree_util.tree_unflatten(structure, inputs.values())
            try:
                with jax.disable_jit(), in_place_updates.changeable():
                    # Copies, which later changes in place do not reach.
                    called = [
                        (jnp if isinstance(value, jax.Array) else np).array(value, copy=True)
                        for value in call(*args, **kwargs)
                    ]
            except Exception as error:
                raise Incomparable(f"it also fails when called with values: {error}") from error
            second = outcome.in_order(run(results, after.constants, *inputs.values()))
            if len(called) != len(second):
                raise Incomparable("it returns a different number of results")
            for index, (value, traced) in enumerate(zip(called, second, strict=True)):
                if np.shape(value) != traced.shape:
                    raise Incomparable(f"result {index} has a different shape")
                converted = jnp.asarray(value).astype(traced.dtype)
                exact &= agree(f"result {index}", converted, traced, below)
    return Compared(id, True, _words(exact), exact)


def below_of(program: RunnableProgram) -> float:
    """Return the fraction of the root mean square that is added to magnitudes, for a program."""
    has_fft = any(equation.primitive.name == "fft" for _, equation in walk(program.jaxpr))
    return _BELOW_SUMS if has_fft else _BELOW


def measure(job: Job[Measure]) -> Measured:
    """Run one or two earlier traces, and return what they took.

    This is the only handler that runs a user's program as it is, with its effects: the user asked
    for it. Its process is for measurements alone, and ends when the user cancels, or past a limit.

    Raises:
        UserError: a trace is no longer kept, or (at stage `measure`) it cannot be run alone.
    """
    request = job.request
    kept = [job.traces.of(id) for id in (request.trace, request.other) if id]
    makes = [functools.partial(_to_measure, trace) for trace in kept]
    with under(kept[0].settings):
        try:
            return measured(makes, request.limits, job.begin, request.id)
        except CannotMeasure as error:
            raise refusal("measure", str(error)) from error


def _to_measure(trace: JaxTrace) -> MeasuredProgram:
    if trace.axes:
        named = " and ".join(f"`{axis}`" for axis in trace.axes)
        raise CannotMeasure(f"the program around it binds {named}, and runs it")
    stage = trace.stage
    located = lowering.located(stage)
    with lowering.no_lines(), under(trace.settings):
        return compile_program(
            located, lowering.names(stage), trace.values, lowering.donated(stage)
        )
