"""Checks that observe more than one run of one program: retraces, other Pythons, scripts."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from jaxsight.repro.checks.base import Assertion, Check, InvalidCheck
from jaxsight.repro.checks.compiled import count
from jaxsight.repro.failures import FINISHED, Failure

_RETRACES = """\
traced = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *rest, **more: traced.append(event) if "jaxpr_trace_duration" in event else None
)
main(*inputs())
if len(traced) > {limit}:
    raise AssertionError(f"traced {{len(traced)}} times")
"""


@dataclass(frozen=True, slots=True)
class Script(Check):
    """A script decides: it gets the path of the candidate, and exits with 0 if interesting."""

    script: Path = Path()

    def holds(self, failure: Failure) -> bool:
        """Return whether the script exited with 0."""
        return failure.kind == FINISHED

    def same(self, failure: Failure, expected: Failure) -> bool:
        """Return whether the script exited with 0; it alone decides."""
        del expected
        return self.holds(failure)


def retraces(text: str, limit: str) -> Check:
    """Return the check `retraces>N`."""
    lines = tuple(_RETRACES.format(limit=count(limit)).splitlines())
    return Assertion(text, lines, level="text", prefix="traced ")


def script(text: str, path: str) -> Check:
    """Return the check `command:SCRIPT`."""
    found = shutil.which(path) or path
    if not Path(found).is_file():
        raise InvalidCheck(f"script {path!r} does not exist")
    return Script(text, level="text", script=Path(found).resolve())
