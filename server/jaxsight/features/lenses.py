"""Code lenses above a function: its active example set, jaxpr, kernels and source in pure JAX.

They show figures that are known, and neither trace nor compile. A function without example inputs
has one if proposed ones were traced.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples.sets import ExampleSet
from jaxsight.features import inputs
from jaxsight.features.measuring.asked import CANCEL, MEASURE
from jaxsight.features.measuring.shown import shown_times
from jaxsight.features.model import Lens
from jaxsight.features.proposals.assumed import worth_proposing
from jaxsight.figures.summary import NOT_YET, UNKNOWN, kernel_figure, shorter_temporary_memory
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.query import Question
from jaxsight.source.text import Position, Range

CHOOSE_SET = "jaxsight.chooseSet"
SHOW_PROPOSED = "jaxsight.showProposed"
KEEP_PROPOSED = "jaxsight.keepProposed"
SHOW = "jaxsight.show"

_IN_FILE = frozenset({"docstring", "class"})
"""Origins of example sets that are written in the file of the function."""


async def lenses(engine: Engine, path: str) -> list[Lens]:
    """Return the lenses above functions with example inputs, and with proposed ones."""
    document = await engine.documents.read(path)
    if document is None or not engine.projects.of(path).settings.code_lens:
        return []
    subjects = engine.documents.subjects(document)
    shown: list[Lens] = []
    for subject in subjects:
        if (chosen := engine.choices.set_of(document, subject)) is None:
            continue
        assumed = ""  # or a proposal in words: `assumed inputs: x: f32[N, M]`
        question = await engine.traces.question(document, subject) if subject.is_proposed else None
        if isinstance(question, Question):
            assumed = inputs.assumed(question, engine.size_names(question))
        figures = await _figures(engine, document, subject, chosen)
        shown += _lenses(path, subject, chosen, figures, assumed)
        shown += await _measuring(engine, document, subject, chosen)
    if engine.projects.of(path).settings.propose_inputs:
        for placed in worth_proposing(document, subjects):
            outcome = await engine.proposals.known(document, *placed)
            if outcome is not None and outcome.computes:
                start, arguments = placed.range.start, (path, placed.function.qualname)
                above = Range(start, start)
                shown.append(Lens(above, "show shapes…", SHOW_PROPOSED, arguments))
    return shown


def _lenses(
    path: str, subject: Subject, chosen: ExampleSet, figures: str, assumed: str
) -> Iterator[Lens]:
    """Yield the lenses of a function, above its decorators.

    A click on the active example set selects another one, or goes to its only one.
    """
    sets = subject.examples.sets
    name = assumed or chosen.name or "example inputs"
    title = f"{name} ({sets.index(chosen) + 1} of {len(sets)})" if len(sets) > 1 else name
    above = Range(subject.range.start, subject.range.start)
    yield Lens(above, title, CHOOSE_SET, (path, subject.id))
    if subject.is_proposed:
        if chosen.dry_call is None:
            yield Lens(above, "keep", KEEP_PROPOSED, (path, subject.id))
        yield Lens(above, "hide", SHOW_PROPOSED, (path, subject.id, "hide"))
    if chosen.dry_call is not None and chosen.dry_call.is_run:
        return
    yield Lens(above, "jaxpr", SHOW, (path, subject.id, "jaxpr"))
    yield Lens(above, f"kernels{figures}", SHOW, (path, subject.id, "kernels"))
    yield Lens(above, "sourcerize", SHOW, (path, subject.id, "pretty"))


async def _measuring(
    engine: Engine, document: Document, subject: Subject, chosen: ExampleSet
) -> list[Lens]:
    """Return the lens that measures a function, with what it took last, or that cancels it.

    There is none for a target that is compiled for without a device, and with inputs that jaxsight
    assumed.
    """
    path, target = document.path, engine.choices.target(document.path)
    is_program = chosen.dry_call is not None and chosen.dry_call.is_run
    if not target.is_own or chosen.assumed or is_program:
        return []
    above = Range(subject.range.start, subject.range.start)
    if engine.measurements.is_running(path, subject.id):
        return [Lens(above, "cancel measuring", MEASURE, (path, subject.id, CANCEL))]
    title = "measure"
    if engine.memory.measured.get((path, subject.id, chosen.name, target.name)) is not None:
        question = await engine.traces.question(document, subject)
        answer = engine.traces.cache.known(question) if isinstance(question, Question) else None
        if isinstance(question, Question) and answer is not None:
            view = engine.traces.located(answer, document.module, question, subject)
            if (times := shown_times(engine, view, target, None)) is not None:
                title = f"measure{' again' if times.stale else ''}: {times.figure}"
    return [Lens(above, title, MEASURE, (path, subject.id))]


async def _figures(engine: Engine, document: Document, subject: Subject, chosen: ExampleSet) -> str:
    """Return `: 14 · 12 MiB`, the kernels and the temporaries, as far as they are known."""
    if (last := engine.memory.shown.get((document.path, subject.id))) is None:
        return ""
    answer, figures = last
    target = engine.choices.target(document.path)
    question = await engine.traces.question(document, subject)
    is_current = isinstance(question, Question) and engine.traces.cache.known(question) is answer
    if not is_current or figures.target != target:
        return ""
    temporaries = shorter_temporary_memory(figures.compiled)
    known = f" · {temporaries}" if temporaries not in (UNKNOWN, NOT_YET) else ""
    assumed = f" {inputs.WITH_SIZES}" if chosen.assumed else ""
    return f": {kernel_figure(figures.graph)}{known}{assumed}"


def inputs_range(engine: Engine, path: str, function: str) -> Range:
    """Return where a function's active example set is written.

    A set of the project's settings, or of a call, is not in the file: its function is.

    Raises:
        LookupError: there is no such function with example inputs.
    """
    document, subject = engine.documents.find(path, function)
    chosen = engine.choices.set_of(document, subject)
    if chosen is None or subject.examples.source not in _IN_FILE:
        return subject.name_range
    line = subject.chunk.first_line + chosen.line
    return Range(Position(line, 0), Position(line, len(document.module.line(line))))
