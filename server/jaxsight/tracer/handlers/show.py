"""Show a trace: its jaxpr, StableHLO, HLO or fingerprint, or a jaxpr interpreter's view."""

from __future__ import annotations

from jaxsight.tracer.failures import UserError, clean, failure, refusal
from jaxsight.tracer.handlers.lower import stablehlo, unoptimized
from jaxsight.tracer.job import Job, under
from jaxsight.tracer.programs import jaxpr_text, sections, views
from jaxsight.tracer.programs.fingerprint import fingerprint
from jaxsight.wire.messages import requests
from jaxsight.wire.messages.replies import Link, Shown
from jaxsight.wire.messages.requests import Show
from jaxsight_source.compat.staging import is_jaxpr, open_jaxpr
from jaxsight_source.jaxprs.graph import dot


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
            return sections.divided(jaxpr_text.whole(request.id, jaxpr), jaxpr)
        case requests.STABLEHLO:
            with under(trace.settings):
                return stablehlo(request, trace)
        case requests.UNOPTIMIZED:
            with under(trace.settings):
                return unoptimized(request, trace)
        case requests.GRAPH:
            return _graph(request, trace.shown.jaxpr)
        case requests.PROGRAM:
            return Shown(request.id, fingerprint(trace.shown.jaxpr))
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
    if request.view not in views.names():
        names = ", ".join(views.names())
        there = f"available: {names}" if names else "no package registers one"
        words = f"unknown jaxpr interpreter {request.view} ({there})"
        raise refusal("view", words, type="LookupError")
    try:
        view = views.load(request.view)(jaxpr)
        text = None if is_jaxpr(view) else str(view)
    except BaseException as error:
        raise UserError(failure(error, "view")) from error
    return jaxpr_text.whole(request.id, view) if text is None else Shown(request.id, clean(text))
