"""Run a traced function, to compare what it computes with another environment: `Evaluate`.

The inputs are random, and the same for every version of JAX and NumPy: they come from a generator
of NumPy's with a seed, whose stream is kept. Numbers of the results are sent, not whole arrays.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsight.tracer.comparison import gradients, random_inputs, runnable_program
from jaxsight.tracer.comparison.closeness import (
    Incomparable,
    plain,
    root_mean_square,
    tolerance,
    wide,
)
from jaxsight.tracer.comparison.random_inputs import ORDINARY
from jaxsight.tracer.comparison.runnable_program import RunnableProgram, terms
from jaxsight.tracer.comparison.two_ways import TwoWays, differences, names_of, shaken
from jaxsight.tracer.handlers.compare import below_of
from jaxsight.tracer.job import Job
from jaxsight.wire.messages.replies import Evaluated, Sampled
from jaxsight.wire.messages.requests import Evaluate

_NUMBERS = 256
"""Numbers of a result that are sent, a choice: an error in a few elements of many may be missed."""
_RESULTS = 64
"""Results that are compared, a choice: a model's gradients have thousands, which change alike."""


def evaluate(job: Job[Evaluate]) -> Evaluated:
    """Run an earlier trace, or its gradient, on random inputs.

    Raises:
        UserError: the trace is no longer kept.
    """
    job.begin("compare")
    shown = job.traces.of(job.request.trace).shown
    try:
        program = RunnableProgram.of(shown)
        runnable_program.check(program)
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            run = _slopes if job.request.gradients else _results
            return Evaluated(job.request.id, tuple(run(program)))
    except Incomparable as error:
        return Evaluated(job.request.id, problem=str(error))
    except Exception as error:  # noqa: BLE001 - a program may fail as it likes
        return Evaluated(job.request.id, problem=f"it fails when it runs: {error}"[:200])


def _results(program: RunnableProgram) -> Iterator[Sampled]:
    ways = TwoWays(program, below_of(program), terms(program))
    yield from _sampled(ways, names_of(len(program.outputs)), program)


def _slopes(program: RunnableProgram) -> Iterator[Sampled]:
    ways = TwoWays(gradients.gradient_of(program), below_of(program), terms(program))
    if gradients.is_differentiable(program) and gradients.is_traceable(ways.usual, program):
        yield from _sampled(ways, gradients.slope_names(program), program)


def _sampled(ways: TwoWays, names: Sequence[str], program: RunnableProgram) -> Iterator[Sampled]:
    """Yield the results of a function that is compiled in two ways, with each kind of inputs."""
    for seed, draw in enumerate(ORDINARY):
        inputs = random_inputs.drawn(program, draw, np.random.default_rng(seed))
        yield from _of(ways, names, (program.constants, *inputs.values()), below_of(program))


def _of(
    ways: TwoWays, names: Sequence[str], args: Sequence[object], below: float
) -> Iterator[Sampled]:
    usual, second = ways.usual(*args), ways.second(*args)
    moved = ways.second(*jax.tree_util.tree_map(shaken, args))
    for name, first, other, shifted in list(zip(names, usual, second, moved, strict=True))[
        :_RESULTS
    ]:
        dtype = plain(first).dtype
        inexact = jnp.issubdtype(dtype, jnp.inexact)
        relative = ways.slack(dtype) * tolerance(dtype) if inexact else 0.0
        distances = differences(shifted, other)
        finite = distances[np.isfinite(distances)]
        yield Sampled(
            name=name,
            usual=_sample(first),
            second=_sample(other),
            relative=relative,
            absolute=relative * below * root_mean_square(wide(plain(other))),
            moved=float(finite.max()) if inexact and finite.size else 0.0,
        )


def _sample(array: jax.Array) -> str:
    """Return numbers of an array, evenly spread over it."""
    numbers = wide(plain(array)).reshape(-1)
    chosen = numbers[np.linspace(0, numbers.size - 1, min(numbers.size, _NUMBERS)).astype(int)]
    parts = chosen.view(np.float64) if chosen.size else np.zeros(0)
    return base64.b64encode(parts.astype("<f8").tobytes()).decode()
