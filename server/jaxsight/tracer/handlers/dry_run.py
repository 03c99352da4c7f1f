"""Run programs dry, and report what they call the functions of a file with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from jaxsight.recording.arguments import write_call
from jaxsight.recording.notation import UnwritableError
from jaxsight.text import unknown_sizes
from jaxsight.tracer.calls.user_function import as_called, find
from jaxsight.tracer.failures import UserError, clean
from jaxsight.tracer.job import Job
from jaxsight.tracer.observation import display
from jaxsight.tracer.states.inside import is_linen
from jaxsight.wire.chunks import chunk_of, line_in_chunk, real_file
from jaxsight.wire.messages.replies import CallSeen, DryCalls
from jaxsight.wire.messages.requests import DryRun
from jaxsight.wire.observations import DRY_RUN, ProgramError

if TYPE_CHECKING:
    from jaxsight.tracer.dry_runs.captured import NotedCall

_LEAVES = 8
"""Maximum number of leaves shown of an argument."""


def dry_run(job: Job[DryRun]) -> DryCalls:
    """Run the programs of a request; the caller sets `files`, `caveats` and `reused`."""
    request = job.request
    deadline = time.monotonic() + request.patience
    seen: list[CallSeen] = []
    functions: dict[str, int] = {}
    fed: dict[str, None] = {}
    errors: list[ProgramError] = []
    fails = False
    for index, entry in enumerate(request.entries):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        job.begin(DRY_RUN, entry.title)
        ran = job.module.dry_run(entry, left)
        fed |= dict.fromkeys(ran.fed)
        errors += ran.errors
        fails |= ran.fails
        functions = {**dict.fromkeys(ran.ran, index), **functions}
        for name, calls in ran.calls.items():
            for number, call in enumerate(calls):
                seen.append(_seen(job, name, index, number, call, ran.sizes))
    ran_themselves = tuple(functions.items())
    return DryCalls(
        request.id, tuple(seen), ran_themselves, tuple(fed), errors=tuple(errors), fails=fails
    )


def _seen(
    job: Job[DryRun],
    name: str,
    entry: int,
    number: int,
    call: NotedCall,
    lines: Mapping[str, tuple[str, int]],
) -> CallSeen:
    values = {parameter: kept.value() for parameter, kept in call.arguments.items()}
    sized = call.sized
    inputs = tuple((each, clean(display.text(value, _LEAVES))) for each, value in values.items())
    if sized:
        inputs = tuple((each, unknown_sizes.named(text)) for each, text in inputs)
    shown = " ".join(text for _, text in inputs)
    names = [name for name in lines if name in shown]  # none if only a closure has them
    file, line, chunk = call.file, call.line, ""
    if (place := chunk_of(call.file)) is not None:
        file, line, chunk = place["path"], line_in_chunk(place, call.line), place["chunk"]
    text = ""
    if not call.unknown and not sized and _is_called_directly(job, name):
        text = "\n".join(_written(values, job.module.namespace))
    return CallSeen(
        name,
        entry,
        number,
        file,
        line,
        inputs,
        call.unknown,
        text,
        chunk,
        call.definition,
        call.compiled,
        sized,
        sizes=tuple((name, *of) for name, of in lines.items() if name in shown or not names)
        if sized
        else (),
        condition=" and ".join(_condition(each, job.module.trace.file) for each in call.conditions),
    )


def _condition(condition: tuple[str, str, int], own: str) -> str:
    """Return a condition as a text; with its line in other files, as edits change that in the own.

    Args:
        condition: its text, its file and its line.
        own: the file of the request.
    """
    text, file, line = condition
    return text if real_file(file) == own else f"{text} (line {line})"


def _is_called_directly(job: Job[DryRun], name: str) -> bool:
    """Return whether a function gets what it is called with, not parts of it, as under `vmap`."""
    if "<locals>" in name:
        return False
    try:
        function = find(job.module.namespace, name)
    except UserError:
        return False
    return as_called(function) is function


def _written(values: dict[str, object], namespace: object) -> Iterator[str]:
    """Yield the arguments as the lines of an example set; nothing if one of them has no form."""
    if any(is_linen(value) for value in values.values()):
        return
    try:
        written = write_call(values.items(), namespace)  # type: ignore[arg-type]
    except UnwritableError:
        return
    if not written.unwritten:
        yield written.text
