"""The calls of a file's functions by its statements, noted while these run with values."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

from jaxsight.tracer.compat import eager_programs
from jaxsight.tracer.dry_runs.captured import NotedCall
from jaxsight.tracer.dry_runs.noted_calls import (
    ExecutedStatements,
    NotedCalls,
    call_traced,
    rank,
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
        # The frame of the function itself: `Recorder.call` is between.
        noted().report(recorder, number, values, sys._getframe(2), {})

    def noted() -> NotedCalls:
        if execution.calls is None:
            execution.calls = NotedCalls()
        return execution.calls

    recorder.capture, placeholders.on_call = report, call_traced
    try:
        with (
            recorder.executing(execution.chunk.id, execution.chunk.key),
            eager_programs.telling(lambda program: noted().program(program)),
        ):
            yield
    finally:
        recorder.capture = placeholders.on_call = None


def of(executions: Iterable[Execution]) -> ExecutedStatements:
    """Return what the statements of a slice called, and which of them did not complete."""
    calls: dict[str, list[NotedCall]] = {}
    stopped = set()
    incomplete: dict[str, ProgramError | None] = {}
    for execution in executions:
        text = execution.chunk.text.strip()
        if execution.stopped or execution.is_absent:
            stopped.add(text)
        elif execution.failed or execution.caveat:
            incomplete[text] = execution.error
            # Not by its own error: a command line lacks arguments, or a name is not bound here.
            stopped |= {text} if execution.failed and execution.error is None else set()
        if execution.calls is not None:
            for name, of_function in execution.calls.by_function.items():
                known = calls.setdefault(name, [])
                known += [replace(call) for call in of_function]  # as its `compiled` may change
                unify_compiled(known)
                known.sort(key=rank)
    return ExecutedStatements(calls, frozenset(stopped), incomplete)
