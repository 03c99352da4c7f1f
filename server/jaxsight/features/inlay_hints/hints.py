"""Inlay hints: which kinds of them are shown, and how long they wait for answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from jaxsight.features.inlay_hints import functions, lines, shapes
from jaxsight.features.inlay_hints.kind import HintDocument, HintKind
from jaxsight.features.model import Hint
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.settings.schema import InlayHints
from jaxsight.source.text import Range
from jaxsight.workers.supervisor import Priority

log = logging.getLogger(__name__)

PATIENCE = 0.15
"""Seconds that hints wait for a new trace and new kernels before they show the stale ones, a
choice: a small function's take 55 ms (`docs/performance.md`); with more, other hints lag."""
_TRACED_AGAIN = 3
"""Times that hints wait for functions that were traced again while they were compiled, a choice."""


KINDS = (
    HintKind(("shapes",), shapes.hints),
    HintKind(("shapes",), functions.untraced),
    HintKind(("shapes", "kernels"), functions.marks),
    HintKind(("shapes", "kernels", "barriers", "collectives"), functions.consent),
    HintKind(("kernels",), functions.totals, needs_kernels=True),
    HintKind(("kernels",), functions.without_kernels, needs_kernels=True),
    HintKind(("barriers",), lines.barriers, needs_kernels=True),
    HintKind(("collectives",), lines.moved, needs_kernels=True),
    HintKind(("collectives",), lines.transfers, needs_kernels=True),
    HintKind(("measured",), lines.measured),
    HintKind(("profile",), lines.profiled),
)
"""All kinds of hints."""


def needs_kernels(settings: InlayHints) -> bool:
    """Return whether functions are compiled for the hints that the settings show."""
    return any(kind.needs_kernels and kind.is_wanted(settings) for kind in KINDS)


async def hints(
    engine: Engine, path: str, range: Range | None = None, *, wait: bool = False
) -> list[Hint]:
    """Return the inlay hints in a range, by default in the whole file.

    Answers within `PATIENCE` with what is known, stale hints marked; a `Refresh` follows when
    there is more. With `wait`, answers when all hints are current.
    """
    if (document := await engine.documents.read(path)) is None:
        return []
    if range is not None:
        engine.attention.show(path, range)
    settings = engine.projects.of(path).settings.inlay_hints
    if not (kinds := [kind for kind in KINDS if kind.is_wanted(settings)]):
        return []
    loop = asyncio.get_running_loop()
    deadline = loop.time() + PATIENCE
    views = await engine.traces.views(document, None if wait else PATIENCE, Priority.SCREEN)
    if settings.shapes:
        named = [view for view in views if settings.size_names or view.assumed]
        await _name_sizes(engine, named, None if wait else deadline - loop.time())
    shows_kernels = any(kind.needs_kernels for kind in kinds)
    if shows_kernels:
        if wait:
            views = await _compiled_views(engine, document)
        else:
            await _compile_quickly(engine, views, deadline - loop.time())
    last_traced = [engine.traces.last_traced(view) for view in views]
    views += [view for view in last_traced if view is not None]
    views.sort(key=lambda view: bool(view.assumed))  # others describe helpers better
    program = await engine.traces.program(document, wait=wait)
    views += [program] if program is not None else []
    views += await compiled_parts(engine, document, wait=wait) if shows_kernels else []
    shown = HintDocument(engine, document, views, settings, range)
    return sorted(
        (hint for kind in kinds for hint in kind.hints(shown) if shown.holds(hint.range)),
        key=lambda hint: (hint.range, hint.label),
    )


async def compiled_parts(engine: Engine, document: Document, *, wait: bool = False) -> list[View]:
    """Return the programs in the file's own program that are no function's; compile them.

    Without `wait`, only those that are traced, and what is not compiled yet is left as it is.
    """
    views = await engine.traces.programs_in(document, wait=wait)
    for view in views if wait else ():
        if not view.stale:
            await engine.programs.with_temporaries(view)
    return views


async def _name_sizes(engine: Engine, views: list[View], patience: float | None) -> None:
    """Give views the names of sizes that are known after `patience` seconds.

    Without a limit, all functions are traced with other sizes, else those for which that was quick
    the last time; a refresh follows for those that take longer.
    """
    sizes = engine.sizes
    fresh = [view for view in views if not view.stale and sizes.cached(view.answer) is None]
    if patience is not None:
        fresh = [view for view in fresh if sizes.is_quick(view.answer.question, PATIENCE)]
    if not fresh or (patience is not None and patience <= 0):
        return
    within = (engine.waiting.within(sizes.explored(v.answer), patience, v) for v in fresh)
    await asyncio.gather(*within, return_exceptions=True)
    for view in fresh:
        engine.traces.name_sizes(view)


async def _compile_quickly(engine: Engine, views: Sequence[View], patience: float) -> None:
    """Compile the functions whose kernels were known soon the last time; wait for `patience`.

    A refresh follows for those that take longer.
    """
    quick = [view for view in views if engine.programs.is_quick(view, PATIENCE)]
    if not quick or patience <= 0:
        return
    within = (engine.waiting.within(engine.programs.result(v), patience, v) for v in quick)
    for view, result in zip(
        quick, await asyncio.gather(*within, return_exceptions=True), strict=True
    ):
        if isinstance(result, Exception):
            log.error("compiling %s", view.subject.name, exc_info=result)


async def _compiled_views(engine: Engine, document: Document) -> list[View]:
    """Return all views, after their programs were compiled.

    If a tracer ended meanwhile, its functions are traced again, a few times at most.
    """
    again: list[View] = []
    for _ in range(_TRACED_AGAIN):
        views = await engine.traces.views(document, None)
        for view in views:
            await engine.programs.with_temporaries(view)
        again = await engine.traces.views(document, None)
        if {id(view.answer) for view in again} == {id(view.answer) for view in views}:
            break
    return again
