"""The calls of a file's functions by its statements, noted while these run with values."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.noted_calls import (
    ExecutedStatements,
    NotedCalls,
    call_traced,
    unify_compiled,
)
from jaxsight.tracer.execution.execution_cache import Execution
from jaxsight.tracer.importing import placeholders
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.observations import ProgramError


@contextlib.contextmanager
def observing(recorder: Recorder, execution: Execution) -> Iterator[None]:
    """Observe the execution of a chunk, and keep what it calls the file's functions with."""

    def report(number: int, values: tuple[object, ...]) -> None:
        if execution.calls is None:
            execution.calls = NotedCalls()
        execution.calls.report(recorder, number, values, sys._getframe(2), {})

    recorder.capture, placeholders.on_call = report, call_traced
    try:
        with recorder.executing(execution.chunk.id, execution.chunk.key):
            yield
    finally:
        recorder.capture = placeholders.on_call = None


def of(executions: Iterable[Execution]) -> ExecutedStatements:
    """Return what the statements of a slice called, and which of them did not complete."""
    calls: dict[str, list[NotedCall]] = {}
    stopped = set()
    incomplete: dict[str, ProgramError | None] = {}
    for execution in executions:
        if execution.stopped or execution.is_absent:
            stopped.add(execution.chunk.text.strip())
        elif execution.failed or execution.caveat:
            incomplete[execution.chunk.text.strip()] = execution.error
        if execution.calls is not None:
            for name, of_function in execution.calls.by_function.items():
                known = calls.setdefault(name, [])
                known += [replace(call) for call in of_function]  # as its `compiled` may change
                unify_compiled(known)
    return ExecutedStatements(calls, frozenset(stopped), incomplete)
