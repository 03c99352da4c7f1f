"""Show a trace: its jaxpr, StableHLO, HLO or fingerprint, or a jaxpr interpreter's view.

Views are interpreters of other packages, found by entry point. The entry points are those of the
Python environment that runs the user's code. A view is a callable that takes a jaxpr, a result of
`jax.make_jaxpr`, and returns text or another jaxpr. The metadata of its package registers it under
its name:

    [project.entry-points."jaxsight.interpreters"]
    flops = "my_package.views:flops"

Listing the names imports nothing; a view's package is imported when the view is shown.
"""

from __future__ import annotations

import functools
import importlib.metadata

from jaxsight.tracer.failures import UserError, clean, failure, refusal
from jaxsight.tracer.handlers.lower import stablehlo, unoptimized
from jaxsight.tracer.job import Job
from jaxsight.tracer.kept_traces import under
from jaxsight.tracer.programs import jaxpr_text
from jaxsight.wire.messages import requests
from jaxsight.wire.messages.replies import Link, Shown
from jaxsight.wire.messages.requests import Show
from jaxsight_source.compat.staging import is_jaxpr, open_jaxpr
from jaxsight_source.jaxprs.graph import dot

_GROUP = "jaxsight.interpreters"


@functools.cache
def view_names() -> tuple[str, ...]:
    """Return the sorted names of all registered views, as they were at the first call."""
    return tuple(sorted({point.name for point in importlib.metadata.entry_points(group=_GROUP)}))


def show(job: Job[Show]) -> Shown:
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
        case requests.STABLEHLO:
            with under(trace.settings):
                return stablehlo(request, trace)
        case requests.UNOPTIMIZED:
            with under(trace.settings):
                return unoptimized(request, trace)
        case requests.GRAPH:
            return _graph(request, trace.shown.jaxpr)
        case requests.PROGRAM:
            return Shown(request.id, jaxpr_text.fingerprint(trace.shown.jaxpr))
        case _:
            return _viewed(request, trace.shown.jaxpr)


def _graph(request: Show, jaxpr: object) -> Shown:
    info = open_jaxpr(jaxpr).debug_info
    lines = dot(jaxpr, str(getattr(info, "func_name", "") or "program"))
    links = tuple(
        Link(number, line.path, jaxpr_text.span(line.equation))
        for number, line in enumerate(lines)
        if line.equation is not None
    )
    return Shown(request.id, clean("".join(f"{line.text}\n" for line in lines)), links)


def _viewed(request: Show, jaxpr: object) -> Shown:
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
    return jaxpr_text.whole(request.id, view) if text is None else Shown(request.id, clean(text))
