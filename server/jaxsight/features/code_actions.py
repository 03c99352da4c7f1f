"""Code actions and code lenses.

Actions that write source request a trace when they are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

from jaxsight.examples.sets import ExampleSet
from jaxsight.features import inputs
from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.measuring.actions import CANCEL, MEASURE
from jaxsight.features.measuring.timing import last_times
from jaxsight.features.model import Action, DocumentKind, Lens, VirtualText
from jaxsight.features.proposals import actions as adding
from jaxsight.features.proposals.assumed import worth_proposing
from jaxsight.features.virtual_documents.show import current
from jaxsight.features.virtual_documents.sourcerized import (
    INSERTED_STYLE,
    inserted_name,
    insertion,
    label,
)
from jaxsight.figures.summary import NOT_YET, UNKNOWN, kernel_figure, shorter_temporary_memory
from jaxsight.queries.documents import Document, Subject, module_name, subject_at
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Question
from jaxsight.source.module import Module
from jaxsight.source.run_marks import ALWAYS, NEVER, mark_edit, mark_of, root_edit
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Edit, Position, Range
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.wire.messages.requests import TransformedSource
from jaxsight.workers.results import Died

QUICK_FIX: Final = "quickfix"
_VIEW = "refactor.rewrite.jaxsight.view"
SOURCERIZE: Final = "refactor.rewrite.jaxsight.sourcerize"
RUN: Final = "refactor.rewrite.jaxsight.run"
MEASURES: Final = "refactor.rewrite.jaxsight.measure"
PANELS: Final = "refactor.rewrite.jaxsight.panel"
OPEN_PANEL: Final = "jaxsight.openPanel"

_RUN_TITLES = {ALWAYS: "Always run this statement", NEVER: "Never run this statement"}

FIX_PATIENCE = 1.0
"""Seconds to wait for fixes that are being verified, a choice: with more, the menu lags."""

_SCALAR = re.compile(r"b?f\w+\[\]")
"""The output type of a function that `jax.grad` accepts (`_check_scalar` in jax/_src/api.py)."""


class EditorExtension(Protocol):
    """What an extension adds to a session: `extend` of its `editor` returns it (`extensions`)."""

    documents: Collection[DocumentKind]

    def actions(
        self, path: str, subject: Subject, range: Range, view: View | None
    ) -> Iterable[Action]:
        """Return the code actions for a range in a function with example inputs."""
        ...

    def document(self, path: str, function: str, kind: DocumentKind) -> VirtualText:
        """Return a virtual document; raise `LookupError` if there is none."""
        ...

    async def aclose(self) -> None:
        """End what is running."""
        ...


async def actions(
    engine: Engine,
    fixing: FixScheduler,
    extensions: Iterable[EditorExtension],
    path: str,
    range: Range,
) -> list[Action]:
    """Return the code actions for a range, with the fixes that are verified within a moment."""
    if (document := await engine.documents.read(path)) is None:
        return []
    module = document.module
    fixes = await fixing.fixes(path, module, range, FIX_PATIENCE)
    actions = [
        Action(fix.title, QUICK_FIX, fix.edits, finding=fix.finding, preferred=fix.safe)
        for fix in (fixes if document.module is module else ())
    ]
    subjects = engine.documents.subjects(document)
    actions += await adding.add_examples(engine, document, subjects, range)
    views = await engine.traces.cached_views(document)
    caveats = [caveat for view in views for caveat in view.caveats]
    actions += run_marks(document.module, caveats, range)
    subject = subject_at(subjects, range.start)
    if subject is not None and engine.choices.set_of(document, subject) is not None:
        question = await engine.traces.question(document, subject)
        answer = engine.traces.cache.cached(question) if isinstance(question, Question) else None
        reply = answer.reply if answer is not None else None
        actions += sourcerize(path, document.module, subject, range, reply)
        # Packages register jaxpr interpreters in the user's environment.
        for name in reply.views if isinstance(reply, Traced) else ():
            title = f"Show {subject.name} with interpreter {name}"
            arguments = (path, subject.id, "view", name)
            actions.append(Action(title, _VIEW, command=SHOW, arguments=arguments))
        target = engine.choices.target(path)
        named = (path, subject.id)
        is_at_name = range.touches(subject.name_range)
        if target.is_own and isinstance(reply, Traced) and is_at_name:
            title = f"Measure {subject.name} on {target.short}"
            actions.append(Action(title, MEASURES, command=MEASURE, arguments=named))
        if is_at_name:
            title = f"Show kernels of {subject.name} in a browser"
            actions.append(Action(title, PANELS, command=OPEN_PANEL, arguments=named))
        view = next((view for view in views if view.subject.id == subject.id), None)
        if view is not None and is_at_name and (view.compiled_as or view.would_be_compiled):
            edit = root_edit(document.module, subject.chunk, subject.function)
            actions.append(Action(f"Treat {subject.name} as compiled", RUN, (edit,)))
        for extension in extensions:
            actions += extension.actions(path, subject, range, view)
    return actions


async def resolve(engine: Engine, path: str, pending: str) -> tuple[Edit, ...]:
    """Return the edits of a pending action: they insert the source of a function below it.

    Raises:
        LookupError: no such function, or no source that could be verified; the message says why.
    """
    if pending.startswith(adding.PENDING):
        return await adding.resolve(engine, path, pending)
    await engine.documents.read(path)
    document, subject = engine.documents.find(path, pending)
    name = inserted_name(document.module, subject.name)
    shown = await current(engine, path, pending, TransformedSource(INSERTED_STYLE, name=name))
    document, subject = engine.documents.find(path, pending)
    return insertion(document.module, subject, shown.text, module_name(document.path))


def run_marks(module: Module, caveats: Sequence[SliceCaveat], range: Range) -> Iterator[Action]:
    """Yield *Always run this statement* and *Never run this statement*.

    Only statements at the range that a caveat names have these actions.
    """
    at = (module.chunk_at(caveat.range.start) for caveat in caveats)
    named = {module.number_of(chunk): chunk for chunk in at if chunk is not None}
    for chunk in named.values():
        last = chunk.first_line + max(chunk.statement.lines_used, 1) - 1
        lines = Range(Position(chunk.first_line, 0), Position(last, len(module.line(last))))
        if not range.touches(lines):
            continue
        current_mark = mark_of(module, chunk)
        for mark, title in _RUN_TITLES.items():
            if current_mark is None or current_mark[0] != mark:
                yield Action(title, RUN, (mark_edit(module, chunk, mark),))


def sourcerize(
    path: str, module: Module, subject: Subject, range: Range, reply: Traced | Failed | Died | None
) -> Iterator[Action]:
    """Yield the actions *Sourcerize …* for a function with example inputs.

    They show the source in a document beside the file, or insert it below the function. On the
    function's name there are its transformations too, `grad` where the result is known to be a
    scalar. A function whose trace failed has none of these actions.

    Args:
        path: the file.
        module: its text.
        subject: the function.
        range: where actions are wanted.
        reply: the result of the last trace, if there was one.
    """
    name = subject.name
    if subject.broken or subject.function.refused or isinstance(reply, Failed | Died):
        return

    def shown(title: str, style: str, transform: str = "") -> Action:
        arguments = (path, subject.id, style, *filter(None, [transform]))
        return Action(title, SOURCERIZE, command=SHOW, arguments=arguments)

    yield shown(f"Sourcerize {name} (expand to pure lax source)", "lax")
    yield shown(f"Sourcerize {name} (readable source)", "pretty")
    below = f"Sourcerize {name} into {inserted_name(module, name)} below it"
    yield Action(below, SOURCERIZE, pending=subject.id)
    if not range.touches(subject.name_range):
        return
    transforms = ["vmap", "jit"]
    if reply is not None and _SCALAR.fullmatch(reply.outputs):
        transforms.insert(0, "grad")
    for transform in transforms:
        yield shown(f"Sourcerize {label(name, transform)}", "lax", transform)
        yield shown(f"Sourcerize {label(name, transform)} (readable source)", "pretty", transform)


# Code lenses above a function: its active example set, jaxpr, kernels and source in pure JAX.
#
# They show figures that are known, and neither trace nor compile. A function without example inputs
# has one if proposed ones were traced.


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
            outcome = await engine.proposals.cached(document, *placed)
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
        answer = engine.traces.cache.cached(question) if isinstance(question, Question) else None
        if isinstance(question, Question) and answer is not None:
            view = engine.traces.located(answer, document.module, question, subject)
            if (times := last_times(engine, view, target, None)) is not None:
                title = f"measure{' again' if times.stale else ''}: {times.figure}"
    return [Lens(above, title, MEASURE, (path, subject.id))]


async def _figures(engine: Engine, document: Document, subject: Subject, chosen: ExampleSet) -> str:
    """Return `: 14 · 12 MiB`, the kernels and the temporaries, as far as they are known."""
    if (last := engine.memory.shown.get((document.path, subject.id))) is None:
        return ""
    answer, figures = last
    target = engine.choices.target(document.path)
    question = await engine.traces.question(document, subject)
    is_current = isinstance(question, Question) and engine.traces.cache.cached(question) is answer
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
