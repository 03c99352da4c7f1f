"""Code lenses above a function: its active example set, jaxpr, kernels and source in pure JAX.

A function without example inputs has one if proposed ones were traced.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples import ExampleSet
from jaxsight.features.model import Lens
from jaxsight.features.proposals.functions import worth_proposing
from jaxsight.queries.documents import Subject
from jaxsight.queries.engine import Engine

CHOOSE_SET = "jaxsight.chooseSet"
SHOW_PROPOSED = "jaxsight.showProposed"
KEEP_PROPOSED = "jaxsight.keepProposed"
SHOW = "jaxsight.show"


async def lenses(engine: Engine, path: str) -> list[Lens]:
    """Return the lenses above functions with example inputs, and with proposed ones."""
    document = await engine.documents.read(path)
    if document is None or not engine.projects.of(path).settings.code_lens:
        return []
    subjects = engine.documents.subjects(document)
    found = [
        lens
        for subject in subjects
        for lens in _lenses(path, subject, engine.choices.set_of(document, subject))
    ]
    if engine.projects.of(path).settings.propose_inputs:
        for chunk, function in worth_proposing(document, subjects):
            outcome = engine.proposals.known(document, chunk, function)
            if outcome is not None and outcome.traced and not outcome.trivial:
                name_range = function.name_range.shifted(chunk.first_line)
                arguments = (path, function.qualname)
                found.append(Lens(name_range, "show shapes…", SHOW_PROPOSED, arguments))
    return found


def _lenses(path: str, subject: Subject, chosen: ExampleSet | None) -> Iterator[Lens]:
    """Yield the lenses of a function; a click on its active example set selects another one."""
    sets = subject.examples.sets
    if chosen is None:
        return
    name = chosen.name or "example inputs"
    if len(sets) > 1:
        number = sets.index(chosen) + 1
        title = f"{name} ({number} of {len(sets)})"
    else:
        title = name
    yield Lens(subject.name_range, title, CHOOSE_SET, (path, subject.name))
    if subject.examples.source == "proposed":
        yield Lens(subject.name_range, "keep", KEEP_PROPOSED, (path, subject.name))
        yield Lens(subject.name_range, "hide", SHOW_PROPOSED, (path, subject.name, "hide"))
    yield Lens(subject.name_range, "jaxpr", SHOW, (path, subject.name, "jaxpr"))
    yield Lens(subject.name_range, "kernels", SHOW, (path, subject.name, "kernels"))
    yield Lens(subject.name_range, "sourcerize", SHOW, (path, subject.name, "pretty"))
