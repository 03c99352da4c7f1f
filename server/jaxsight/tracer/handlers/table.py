"""The table of requests: which handler answers a request.

A new request is a message in `wire/messages`, a function in this folder, and a line of this table.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder

from jaxsight.tracer.handlers.lower import lower
from jaxsight.tracer.handlers.outline import outline
from jaxsight.tracer.handlers.running import compare, measure
from jaxsight.tracer.handlers.show import show, sourcerize
from jaxsight.tracer.handlers.trace import dry_run, trace
from jaxsight.tracer.job import Job
from jaxsight.wire.messages import requests
from jaxsight.wire.messages.replies import MissingModules, Reply


@dataclass(frozen=True, slots=True)
class Handler:
    """How a request is answered: `answer` takes its `Job` and returns the reply."""

    answer: Callable[..., Reply]
    runs_user_code: str = ""
    """The stage at which user code of an earlier trace runs, such as lowering rules.

    Such a request can be cancelled, and the process is restored after it. Requests that execute a
    slice do so anyway.
    """


def find_modules(job: Job[requests.FindModules]) -> MissingModules:
    """Return the modules that neither the project nor the environment has; import none."""
    request = job.request
    missing = [name for name in request.modules if not _is_found(name, request.folders)]
    return MissingModules(request.id, tuple(missing))


def _is_found(name: str, folders: Sequence[str]) -> bool:
    # Finding a top-level module imports nothing, in contrast to one of a package.
    if name in sys.modules or PathFinder.find_spec(name, folders) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a finder of the environment has failed
        return False


HANDLERS: Mapping[type[requests.Request[object]], Handler] = {
    requests.Trace: Handler(trace),
    requests.DryRun: Handler(dry_run),
    requests.Sourcerize: Handler(sourcerize),
    requests.Show: Handler(show),
    requests.Lower: Handler(lower, runs_user_code="lower"),
    requests.Outline: Handler(outline),
    requests.Compare: Handler(compare, runs_user_code="compare"),
    requests.Measure: Handler(measure, runs_user_code="measure"),
    requests.FindModules: Handler(find_modules),
}
