"""The functions of a file that have example inputs: what they call is observed."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from jaxsight.examples.sets import ExampleSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.traces.query import mesh_names
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.source.module import Module
from jaxsight.wire.messages.inputs import GivenCall

_MOST = 40
"""Functions of a file that are traced for their calls, a choice: all of most files."""


def given_calls(
    module: Module, subjects: Iterable[tuple[Subject, ExampleSet | None]]
) -> tuple[GivenCall, ...]:
    """Return the functions whose inputs are written or recorded.

    Args:
        module: the file's text.
        subjects: its functions with their active example sets.
    """
    found = (
        GivenCall(
            function=subject.name,
            arguments=chosen.arguments,
            sizes=chosen.sizes,
            mesh=chosen.mesh,
            mesh_is_default=chosen.mesh_is_default,
            mesh_source=chosen.mesh_source,
            mesh_names=mesh_names(module) if chosen.needs_mesh else (),
        )
        for subject, chosen in subjects
        if chosen is not None
        and not (subject.is_called or subject.is_proposed or chosen.assumed)
        and not subject.function.refused
    )
    return tuple(islice(found, _MOST))


def given_in(path: str, text: str, outside: ExampleSettings) -> tuple[GivenCall, ...]:
    """Return the functions of a file that is not open whose inputs are written or recorded."""
    document = Document(path, text)
    every = document.subjects(outside)
    return given_calls(
        document.module,
        ((each, each.examples.sets[0] if each.examples.sets else None) for each in every),
    )
