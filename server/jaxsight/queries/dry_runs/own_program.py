"""A file's own program as a subject, so that its top-level statements show what they compute."""

from __future__ import annotations

from collections.abc import Mapping

from jaxsight.examples.jax_use import JaxUse
from jaxsight.examples.programs.entries import entries_in
from jaxsight.examples.sets import Examples, ExampleSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.dry_runs.labels import run_label
from jaxsight.source.functions import Function
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages.inputs import RUN, DryCall, EntryPoint
from jaxsight.wire.messages.replies import DryCalls

_NOWHERE = Range(Position(0, 0), Position(0, 0))


def acts(module: Module) -> bool:
    """Return whether a module's statements do something with JAX."""
    return JaxUse.of(module).uses is not None and entries_in(module.text).acts


def program_of(
    document: Document, ran: Mapping[tuple[EntryPoint, ...], DryCalls | None]
) -> Subject | None:
    """Return the program that begins at the top level of a document, if it is among those that ran.

    It has no name and no place, and its inputs are a run of it.
    """
    entries = (entry for batch, reply in ran.items() if reply is not None for entry in batch)
    own = (entry for entry in entries if entry.is_own(document.path))
    entry, chunks = next(own, None), document.module.chunks
    if entry is None or not chunks:
        return None
    run = ExampleSet(
        name=run_label(document, entry),
        arguments=(),
        sizes=(),
        call=None,
        expects=(),
        line=0,
        may_fail=True,
        dry_call=DryCall(entry, RUN),
    )
    function = Function("", "function", _NOWHERE, _NOWHERE, _NOWHERE.start, ())
    return Subject(chunks[0], function, Examples((run,), (), "program"), "")
