"""What a run recorded, as lines for people."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from jaxsight.recording import recorded_file
from jaxsight.recording.merging import Recording, Unwritten
from jaxsight.recording.recorded_file import Functions
from jaxsight.text import units
from jaxsight.text.inert import clause, one_line

_WIDTH, _MOST_REASONS = 100, 10
"""Columns of a line, and lines with reasons: what fits in a terminal."""


def lines(recording: Recording, root: Path, limit: int) -> Iterator[str]:
    """Yield what was recorded, and what could not be."""
    count = sum(len(functions) for functions in recording.functions.values())
    if not count:
        yield (
            f"recorded nothing: no function in {one_line(str(root))} was called with arrays of JAX"
        )
    for project, functions in recording.functions.items():
        path = recorded_file.path_in(project)
        relative = os.path.relpath(path)
        file = str(path) if relative.startswith(os.pardir) else relative
        unwritten = recording.unwritten.get(project, {})
        whole = {key: calls for key, calls in functions.items() if key not in unwritten}
        yield f"recorded {units.count(len(whole), 'function')} in {one_line(file)}"
        yield from listed(whole, limit)
        yield from _unwritten(unwritten)
    yield from map(one_line, recording.problems)


def listed(functions: Functions, limit: int) -> Iterator[str]:
    """Yield each function with its first inputs on one line."""
    for number, ((file, name), calls) in enumerate(functions.items()):
        if number == limit:
            yield f"  … and {len(functions) - limit} more"
            return
        inputs = ", ".join(calls[0].inputs.split("\n"))
        more = f" (and {len(calls) - 1} more)" if len(calls) > 1 else ""
        head = one_line(f"  {file}:{name}")
        yield f"{head}  {clause(inputs, max(_WIDTH - len(head) - len(more), 30))}{more}"


def _unwritten(unwritten: Unwritten) -> Iterator[str]:
    if unwritten:
        count = units.count(len(unwritten), "function")
        yield f"recorded in part, as arguments have no form as example inputs: {count}"
    for number, ((file, name), reasons) in enumerate(unwritten.items()):
        if number == _MOST_REASONS:
            yield f"  … and {len(unwritten) - number} more"
            return
        parts = [f"{name_of}: {reason}" if name_of else reason for name_of, reason in reasons]
        yield one_line(f"  {file}:{name}  {'; '.join(parts)}")
