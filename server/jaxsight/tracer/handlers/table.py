"""The table of requests: which handler answers a request.

A new request is a message in `wire/messages`, a module here, and a line of this table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jaxsight.tracer.handlers.change import change
from jaxsight.tracer.handlers.compare import compare
from jaxsight.tracer.handlers.dry_run import dry_run
from jaxsight.tracer.handlers.find_modules import find_modules
from jaxsight.tracer.handlers.lower import lower
from jaxsight.tracer.handlers.measure import measure
from jaxsight.tracer.handlers.outline import outline
from jaxsight.tracer.handlers.show import show
from jaxsight.tracer.handlers.sourcerize import sourcerize
from jaxsight.tracer.handlers.trace import trace
from jaxsight.wire.messages.replies import Reply
from jaxsight.wire.messages.requests import (
    Compare,
    DryRun,
    FindModules,
    Lower,
    LowerChanged,
    Measure,
    Outline,
    Request,
    Show,
    Sourcerize,
    Trace,
)


@dataclass(frozen=True, slots=True)
class Handler:
    """How a request is answered: `answer` takes its `Job` and returns the reply."""

    answer: Callable[..., Reply]
    runs_user_code: str = ""
    """The stage at which user code of an earlier trace runs, such as lowering rules.

    Such a request can be cancelled, and the process is restored after it. Requests that execute a
    slice do so anyway.
    """


HANDLERS: Mapping[type[Request[object]], Handler] = {
    Trace: Handler(trace),
    DryRun: Handler(dry_run),
    Sourcerize: Handler(sourcerize),
    Show: Handler(show),
    Lower: Handler(lower, runs_user_code="lower"),
    LowerChanged: Handler(change, runs_user_code="lower"),
    Outline: Handler(outline),
    Compare: Handler(compare, runs_user_code="compare"),
    Measure: Handler(measure, runs_user_code="measure"),
    FindModules: Handler(find_modules),
}
