"""Code lenses above a function: its active example set, jaxpr, kernels and source in pure JAX."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples import ExampleSet
from jaxsight.features.model import Lens
from jaxsight.queries.documents import Subject
from jaxsight.queries.engine import Engine

CHOOSE_SET = "jaxsight.chooseSet"
SHOW = "jaxsight.show"


async def lenses(engine: Engine, path: str) -> list[Lens]:
    """Return the lenses above each function with example inputs."""
    document = await engine.documents.read(path)
    if document is None or not engine.projects.of(path).settings.code_lens:
        return []
    return [
        lens
        for subject in engine.documents.subjects(document)
        for lens in _lenses(path, subject, engine.choices.set_of(document, subject))
    ]


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
    yield Lens(subject.name_range, "jaxpr", SHOW, (path, subject.name, "jaxpr"))
    yield Lens(subject.name_range, "kernels", SHOW, (path, subject.name, "kernels"))
    yield Lens(subject.name_range, "sourcerize", SHOW, (path, subject.name, "pretty"))
