"""Which programs run in one request, and what it says of a function that none of them calls."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import PurePath

from jaxsight.examples.jax_use import is_program_name
from jaxsight.text.units import some
from jaxsight.wire.messages.inputs import EntryPoint

_BATCH = 4
"""Programs of one file that run in one request, a choice: all are lost when one ends the tracer."""
_NAMED = 2
"""Files that a reason names, a choice: it is one clause."""

Batch = tuple[EntryPoint, ...]
"""Programs that are run by one request."""


def batches(programs: tuple[EntryPoint, ...]) -> Iterator[Batch]:
    """Yield the programs that run in one request: some of one file, or one of several tests."""
    for _, group in groupby(programs, key=lambda entry: entry.file):
        batch: Batch = ()
        for entry in group:
            of_several = " " in entry.function
            if batch and (of_several or len(batch) == _BATCH):
                yield batch
                batch = ()
            batch += (entry,)
            if of_several:
                yield batch
                batch = ()
        if batch:
            yield batch


def why_uncalled(
    path: str,
    function: str,
    entries: Sequence[EntryPoint],
    ended: Collection[EntryPoint],
    ran: Collection[str],
) -> str:
    """Return why a function has no calls once all programs have run.

    Args:
        path: its file.
        function: its qualified name.
        entries: the programs.
        ended: those that were run.
        ran: the functions of the file that ran in them.
    """
    if function in ran:
        return "it was run, and no array was seen in it"
    own = [entry for entry in entries if entry.file == path]
    if is_program_name(function) and not any(function in e.function.split() for e in own):
        return "it is not run here: its arguments are not in this file"
    # Of functions with example inputs, only what they call is run.
    entries = [entry for entry in entries if not entry.given]
    if not entries:
        return "no program, test or notebook uses this file"
    files = dict.fromkeys(
        "this file" if entry.file == path else f"`{PurePath(entry.file).name}`" for entry in entries
    )
    cut = "" if {*entries} <= {*ended} else ", which did not end in time"
    return f"not called in a run of {some([*files], _NAMED, ' and ')}{cut}"
