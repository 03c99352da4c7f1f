"""Show a trace: its whole jaxpr, its StableHLO, its fingerprint, or a jaxpr interpreter's view."""

from __future__ import annotations

from jaxsight.tracer.handlers.lower import stablehlo
from jaxsight.tracer.handlers.view import viewed
from jaxsight.tracer.job import Job
from jaxsight.tracer.kept_traces import under
from jaxsight.tracer.programs import jaxpr_text, sections
from jaxsight.tracer.programs.fingerprint import fingerprint
from jaxsight.wire.messages import requests
from jaxsight.wire.messages.replies import Shown
from jaxsight.wire.messages.requests import Show


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
        case requests.PROGRAM:
            return Shown(request.id, fingerprint(trace.shown.jaxpr))
        case _:
            return viewed(request, trace.shown.jaxpr)
