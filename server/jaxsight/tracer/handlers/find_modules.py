"""Find the modules that a file imports, without importing any: the answer to `FindModules`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder

from jaxsight.tracer.job import Job
from jaxsight.wire.messages.replies import FoundModules
from jaxsight.wire.messages.requests import FindModules


def find_modules(job: Job[FindModules]) -> FoundModules:
    """Return the modules that neither the project nor the environment has."""
    request = job.request
    missing = [name for name in request.modules if not _is_found(name, request.folders)]
    return FoundModules(request.id, tuple(missing))


def _is_found(name: str, folders: Sequence[str]) -> bool:
    # Finding a top-level module imports nothing, in contrast to one of a package.
    if name in sys.modules or PathFinder.find_spec(name, folders) is not None:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # a finder of the environment has failed
        return False
