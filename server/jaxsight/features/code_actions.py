"""Code actions.

Those that write source request a trace when they are chosen.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, Protocol

from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.insertion import INSERTED_STYLE, inserted_name, insertion
from jaxsight.features.lenses import SHOW
from jaxsight.features.measuring.asked import MEASURE
from jaxsight.features.model import Action, DocumentKind, VirtualText
from jaxsight.features.proposals import actions as adding
from jaxsight.features.virtual_documents.show import current
from jaxsight.features.virtual_documents.sourcerized import label
from jaxsight.queries.documents import Subject, module_name, subject_at
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

    def shown(self, path: str, function: str, kind: DocumentKind) -> VirtualText:
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
    document = await engine.documents.read(path)
    if document is None:
        return []
    module = document.module
    fixes = await fixing.fixes(path, module, range, FIX_PATIENCE)
    actions = [
        Action(fix.title, QUICK_FIX, fix.edits, finding=fix.finding, preferred=fix.safe)
        for fix in (fixes if document.module is module else ())
    ]
    subjects = engine.documents.subjects(document)
    actions += await adding.add_examples(engine, document, subjects, range)
    views = await engine.traces.known_views(document)
    caveats = [caveat for view in views for caveat in view.caveats]
    actions += run_marks(document.module, caveats, range)
    subject = subject_at(subjects, range.start)
    if subject is not None and engine.choices.set_of(document, subject) is not None:
        question = await engine.traces.question(document, subject)
        answer = engine.traces.cache.known(question) if isinstance(question, Question) else None
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
