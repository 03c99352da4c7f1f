"""Show a trace: its jaxpr, StableHLO, HLO, fingerprint, a jaxpr interpreter's view, or its source.

Views are interpreters of other packages, found by entry point. The entry points are those of the
Python environment that runs the user's code. A view is a callable that takes a jaxpr, a result of
`jax.make_jaxpr`, and returns text or another jaxpr. The metadata of its package registers it under
its name:

    [project.entry-points."jaxsight.interpreters"]
    flops = "my_package.views:flops"

Listing the names imports nothing; a view's package is imported when the view is shown.
"""

from __future__ import annotations

import base64
import functools
import importlib.metadata
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jaxsight.text import units
from jaxsight.tracer.calls import stateful_traces
from jaxsight.tracer.calls.leaves import is_array
from jaxsight.tracer.calls.transforms import transformed
from jaxsight.tracer.calls.user_function import TraceableCall
from jaxsight.tracer.failures import UserError, clean, collected, failure, refusal
from jaxsight.tracer.handlers import lower
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.job import Job
from jaxsight.tracer.observation.variable_names import Naming
from jaxsight.tracer.programs import jaxpr_text
from jaxsight.tracer.states.watch import Watch
from jaxsight.wire.frames import CAPTURED_LIMIT
from jaxsight.wire.messages import requests
from jaxsight.wire.messages.replies import Link, Listing
from jaxsight.wire.messages.requests import Show, Sourcerize, TransformedSource
from jaxsight_source.compat.inner import equation_count
from jaxsight_source.compat.staging import is_jaxpr, open_jaxpr
from jaxsight_source.errors import NotTheSame, Untraceable
from jaxsight_source.jaxprs.graph import dot

if TYPE_CHECKING:
    from jaxsight_source.written import Written

_GROUP = "jaxsight.interpreters"


@functools.cache
def view_names() -> tuple[str, ...]:
    """Return the sorted names of all registered views, as they were at the first call."""
    return tuple(sorted({point.name for point in importlib.metadata.entry_points(group=_GROUP)}))


def show(job: Job[Show]) -> Listing:
    """Return a text of an earlier trace.

    Raises:
        UserError: it is no longer kept, or the view failed.
    """
    request = job.request
    trace = job.traces.of(request.trace)
    match request.view:
        case requests.JAXPR:
            jaxpr = trace.shown.jaxpr
            return jaxpr_text.divided(jaxpr_text.whole(request.id, jaxpr), jaxpr)
        case requests.STABLEHLO | requests.UNOPTIMIZED:
            return lower.text(request, trace)
        case requests.GRAPH:
            return _graph(request, trace.shown.jaxpr)
        case requests.PROGRAM:
            return Listing(request.id, jaxpr_text.fingerprint(trace.shown.jaxpr))
        case _:
            return _viewed(request, trace.shown.jaxpr)


def _graph(request: Show, jaxpr: object) -> Listing:
    info = open_jaxpr(jaxpr).debug_info
    lines = dot(jaxpr, str(getattr(info, "func_name", "") or "program"))
    links = tuple(
        Link(number, line.path, jaxpr_text.span(line.equation))
        for number, line in enumerate(lines)
        if line.equation is not None
    )
    return Listing(request.id, clean("".join(f"{line.text}\n" for line in lines)), links)


def _viewed(request: Show, jaxpr: object) -> Listing:
    """Return the text of the jaxpr interpreter `request.view`, or the jaxpr that it returns.

    It is another package's, and so user code: any error that it raises is an answer.

    Raises:
        UserError: there is no such interpreter, or it failed; its stage is `view`.
    """
    if request.view not in view_names():
        names = ", ".join(view_names())
        there = f"available: {names}" if names else "no package registers one"
        words = f"unknown jaxpr interpreter {request.view} ({there})"
        raise refusal("view", words, type="LookupError")
    try:
        points = importlib.metadata.entry_points(group=_GROUP)
        view = {point.name: point for point in points}[request.view].load()(jaxpr)
        text = None if is_jaxpr(view) else str(view)
    except BaseException as error:
        raise UserError(failure(error, "view")) from error
    return jaxpr_text.whole(request.id, view) if text is None else Listing(request.id, clean(text))


def sourcerize(job: Job[Sourcerize]) -> Listing:
    """Write a function, or a transformation of it, as source; the caller sets `reused`.

    Raises:
        UserError: tracing failed, or, at stage `sourcerize`, there is no source.
        CancelledByServer: the request was cancelled.
    """
    module, options = job.module, job.request.options
    recorder, chunks = module.recorder, module.trace.chunks
    job.begin("inputs")
    with module.called() as (function, inputs):
        job.begin("sourcerize")
        watch = Watch(function.call, inputs.named)
        with recorder.tracing() as sites, collected(inputs.warnings), watch:
            try:
                state = stateful_traces.updating(function, inputs)
                naming = recorder.naming = Naming(recorder.site, chunks, module.trace.file)
                name = module.trace.function
                call = transformed(function, inputs, name, options.transform, state)
                return written(job.request.id, call, options, naming)
            except (CancelledByServer, UserError):
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                error = failure(raised, "trace")
            finally:
                # It keeps variables of the trace alive.
                recorder.naming = None
        raise UserError(error, recorder.collect(chunks, sites))


def written(id: int, call: TraceableCall, options: TransformedSource, naming: Naming) -> Listing:
    """Return the text with its links; the caller sets `reused`.

    Raises:
        UserError: the function can be traced but not written; its stage is `sourcerize`.
        Exception: any error of the function's own.
    """
    # Imported on first use, as few sessions need it.
    from jaxsight_source import api

    with _refused(call.about, Untraceable):
        traced = api.traced(call.function, call.args, call.kwargs, is_array)
    with _refused(call.about):
        named = replace(options.plain, name=options.name or call.name)
        source = api.write_traced(*traced, named, naming.name_of, naming.fits)
    return Listing(
        id,
        clean(source.text),
        tuple(
            dict.fromkeys(
                Link(line, path, jaxpr_text.span(equation))
                for line, path, equation in source.links()
            )
        ),
        equation_count(source.program),
        companion=_companion(source),
        ran=source.ran.ways,
    )


@contextmanager
def _refused(about: str, kinds: type[Exception] = Exception) -> Iterator[None]:
    """Raise errors of some kinds as reasons why there is no source."""
    try:
        yield
    except kinds as error:
        name = type(error).__name__
        if isinstance(error, NotTheSame):
            words = f"source of {about} discarded: {' '.join(error.why.split())}"
        else:
            why = failure(error, "sourcerize").message or name
            words = f"cannot write {about} as source: {why}"
        raise refusal("sourcerize", words, type=name) from error


def _companion(written: Written) -> str:
    """Return the file of arrays for a module that reads one.

    Raises:
        UserError: it is too large to be sent.
    """
    arrays = written.source.constants
    if not arrays:
        return ""
    if (size := sum(array.nbytes for array in arrays.values())) > CAPTURED_LIMIT:
        words = (
            f"the arrays of {written.name} are too large ({units.size(size)}); "
            'use jaxsight.sourcerize(..., constants="npz")(...).save(path) in Python'
        )
        raise refusal("sourcerize", words, type="TooLarge")
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return base64.b64encode(file.getvalue()).decode("ascii")
