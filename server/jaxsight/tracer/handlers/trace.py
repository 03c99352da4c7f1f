"""Trace a function with its inputs, or the functions that programs call which are run dry.

The jaxpr is that of `jax.make_jaxpr(f)(*args)`; for a `jax.jit` function it is the body.
This must never run an equation.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import jax
from jax import stages

from jaxsight.meshes.compat import shardings
from jaxsight.recording.expressions import write_call
from jaxsight.recording.notation import UnwritableError
from jaxsight.text import unknown_sizes
from jaxsight.timeline import mark
from jaxsight.tracer.calls import stateful_traces
from jaxsight.tracer.calls.inputs import Inputs
from jaxsight.tracer.calls.leaves import placements
from jaxsight.tracer.calls.parameters import named
from jaxsight.tracer.calls.stateful_call import Outcome
from jaxsight.tracer.calls.user_function import UserFunction, as_called, find
from jaxsight.tracer.compat import jaxprs, traces
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.failures import UserError, clean, collected, failure
from jaxsight.tracer.handlers.show import view_names
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.job import JaxTrace, Job
from jaxsight.tracer.observation import display, scopes, trees
from jaxsight.tracer.observation.observed_values import Observed
from jaxsight.tracer.programs import jaxpr_text
from jaxsight.tracer.states.inside import is_linen
from jaxsight.wire.chunks import chunk_of, line_in_chunk, real_file
from jaxsight.wire.messages.replies import CallRecord, DryCalls, Traced
from jaxsight.wire.messages.requests import DryRun, Trace
from jaxsight.wire.observations import DRY_RUN, Failure, Frame, ProgramError
from jaxsight_source.compat import avals
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.compat.staging import open_jaxpr, opened

if TYPE_CHECKING:
    from jaxsight.tracer.dry_runs.captured import NotedCall

_LEAVES = 40
"""Maximum number of leaves shown of a parameter, and of the result."""
_FEW_LEAVES = 8
"""Maximum number of leaves shown of an argument of a call in a dry run."""

traces.leave_out(str(Path(__file__).resolve().parents[1]), real_file)


def trace(job: Job[Trace]) -> Traced:
    """Trace the function of a request; the caller sets `executed` and `files`.

    Raises:
        UserError: tracing failed; it has the observations until then.
        MoreDevices: it failed, and may succeed with more devices.
        CancelledByServer: the request was cancelled.
    """
    job.begin("inputs")
    if job.request.dry_call is not None and job.request.dry_call.is_run:
        raise UserError(Failure(DRY_RUN, "", ""), job.module.observed_dry(job.request.dry_call))
    traced, axes = stateful_traces.with_axes(partial(_called, job))
    unbound = stateful_traces.axis_caveats(axes, job.module.trace.chunks, job.request.function)
    return replace(traced, caveats=unbound)


def _called(job: Job[Trace]) -> Traced:
    begin = time.perf_counter()
    with job.module.called() as (function, inputs):
        values = job.module.values(function) if job.request.with_values else {}
        job.begin("trace")
        middle = time.perf_counter()
        traced = _traced(job, function, inputs, values)
    return replace(traced, seconds=(("inputs", middle - begin), *traced.seconds))


def _traced(
    job: Job[Trace], function: UserFunction, inputs: Inputs, values: Mapping[str, object]
) -> Traced:
    """Trace a function with its inputs, under their mesh, and keep the trace with their values."""
    module = job.module
    begin = time.perf_counter()
    outcome = Outcome()
    error: Failure | None = None
    reached: list[jaxprs.Reached] = []
    stage: stages.Traced | None = None
    placed = shardings.declared(function.call, inputs.args)
    arguments = placements((placed, inputs.kwargs))
    with (
        module.recorder.tracing(arguments) as sites,
        scopes.recorded(job.request.function),
        collected(inputs.warnings),
    ):
        try:
            stage, outcome = stateful_traces.traced(function, inputs)
        except CancelledByServer:
            raise
        except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
            device_demand.demand(raised, module.trace)
            # Raised again below, because the exception's frames hold tracers.
            error = failure(raised, "trace")
            reached = module.recorder.unfinished()
    if stage is not None and (escaped := traces.leaked(stage)) is not None:
        leak, equation = escaped
        error = failure(leak, "trace")
        span = jaxpr_text.span(equation) if equation is not None else None
        if span is not None:  # the expression that uses the leaked tracer
            frame = Frame(module.trace.function, module.trace.file, span.line, span)
            error = replace(error, frames=(frame,))
    if error is not None:
        raise UserError(error, module.recorder.collect(module.trace.chunks, sites, reached))
    assert stage is not None  # there is an error otherwise
    end = time.perf_counter()
    mark("traced")
    kept_trace = JaxTrace.of(stage, outcome, values)
    if job.request.keep:
        job.traces.put(job.request.id, kept_trace)
    observed = module.recorder.collect(
        module.trace.chunks, sites, jaxprs.reached(kept_trace.shown.jaxpr)
    )
    parameters = named(function, placed, inputs.kwargs) if function.jitted else inputs.named
    results = shardings.declared_results(function.call, _results(kept_trace))
    traced = _described(job.request.id, kept_trace, parameters, results, observed)
    mark("described")
    return replace(
        traced,
        warnings=tuple(dict.fromkeys(inputs.warnings)),
        seconds=(
            ("trace", end - begin),
            ("describe", time.perf_counter() - end),
        ),
    )


def _described(
    id: int,
    kept_trace: JaxTrace,
    parameters: dict[str, object],
    results: object,
    observed: Observed,
) -> Traced:
    """Return the reply about a trace."""
    jaxpr, outcome = kept_trace.shown.jaxpr, kept_trace.outcome
    equations = equation_count(jaxpr)
    text, is_folded = jaxpr_text.folded(jaxpr, equations)
    constants = map(avals.of, opened(jaxpr).consts)
    return Traced(
        id=id,
        parameters=tuple(
            (name, clean(display.text(value, _LEAVES))) for name, value in parameters.items()
        ),
        outputs=clean(display.text(results, _LEAVES)),
        trees=tuple(
            (name, tree)
            for name, value in parameters.items()
            if (tree := trees.tree(value)) is not None
        ),
        jaxpr=text,
        folded=is_folded,
        equations=equations,
        constants=tuple((avals.text(aval), avals.size(aval)) for aval in constants),
        seen=observed.seen,
        observations=observed.observations,
        views=view_names(),
        updates=outcome.updates,
        left_out=outcome.left_out,
    )


def _results(kept_trace: JaxTrace) -> object:
    """Return the abstract values of the function's result, without its updates."""
    outcome = kept_trace.outcome
    variables = open_jaxpr(kept_trace.shown.jaxpr).outvars
    arrays = (var.aval for var in variables[outcome.start : outcome.start + outcome.count])
    structure = outcome.structure
    leaves = [
        display.TextLeaf(outcome.texts[index]) if index in outcome.texts else next(arrays)
        for index in range(structure.num_leaves)
    ]
    try:
        results: object = jax.tree_util.tree_unflatten(structure, leaves)
    except Exception:  # noqa: BLE001 - user code
        # A class may check its leaves on construction; show the leaves alone.
        results = tuple(leaves)
    return results


def dry_run(job: Job[DryRun]) -> DryCalls:
    """Run the programs of a request; the caller sets `files`, `caveats` and `reused`."""
    request = job.request
    deadline = time.monotonic() + request.patience
    seen: list[CallRecord] = []
    functions: dict[str, int] = {}
    fed: dict[str, None] = {}
    errors: list[ProgramError] = []
    fails = False
    for index, entry in enumerate(request.entries):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        job.begin(DRY_RUN, entry.title)
        ran = job.module.dry_run(entry, left)
        fed |= dict.fromkeys(ran.fed)
        errors += ran.errors
        fails |= ran.fails
        functions = {**dict.fromkeys(ran.ran, index), **functions}
        for name, calls in ran.calls.items():
            for number, call in enumerate(calls):
                seen.append(_seen(job, name, index, number, call, ran.sizes))
    ran_themselves = tuple(functions.items())
    return DryCalls(
        request.id, tuple(seen), ran_themselves, tuple(fed), errors=tuple(errors), fails=fails
    )


def _seen(
    job: Job[DryRun],
    name: str,
    entry: int,
    number: int,
    call: NotedCall,
    lines: Mapping[str, tuple[str, int]],
) -> CallRecord:
    values = {parameter: kept.value() for parameter, kept in call.arguments.items()}
    sized = call.sized
    inputs = tuple(
        (each, clean(display.text(value, _FEW_LEAVES))) for each, value in values.items()
    )
    if sized:
        inputs = tuple((each, unknown_sizes.named(text)) for each, text in inputs)
    shown = " ".join(text for _, text in inputs)
    names = [name for name in lines if name in shown]  # none if only a closure has them
    file, line, chunk = call.file, call.line, ""
    if (place := chunk_of(call.file)) is not None:
        file, line, chunk = place["path"], line_in_chunk(place, call.line), place["chunk"]
    text = ""
    if not call.unknown and not sized and _is_called_directly(job, name):
        text = _written(values, job.module.namespace)
    return CallRecord(
        name,
        entry,
        number,
        file,
        line,
        inputs,
        call.unknown,
        text,
        chunk,
        call.definition,
        call.compiled,
        sized,
        sizes=tuple((name, *of) for name, of in lines.items() if name in shown or not names)
        if sized
        else (),
        condition=" and ".join(_condition(each, job.module.trace.file) for each in call.conditions),
    )


def _condition(condition: tuple[str, str, int], own: str) -> str:
    """Return a condition as a text; with its line in other files, as edits change that in the own.

    Args:
        condition: its text, its file and its line.
        own: the file of the request.
    """
    text, file, line = condition
    return text if real_file(file) == own else f"{text} (line {line})"


def _is_called_directly(job: Job[DryRun], name: str) -> bool:
    """Return whether a function gets what it is called with, not parts of it, as under `vmap`."""
    if "<locals>" in name:
        return False
    try:
        function = find(job.module.namespace, name)
    except UserError:
        return False
    return as_called(function) is function


def _written(values: dict[str, object], namespace: object) -> str:
    """Return the arguments as the lines of an example set; nothing if one of them has no form."""
    if any(map(is_linen, values.values())):
        return ""
    try:
        written = write_call(values.items(), namespace)  # type: ignore[arg-type]
    except UnwritableError:
        return ""
    return "" if written.unwritten else written.text
