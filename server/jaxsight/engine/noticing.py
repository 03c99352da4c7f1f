"""From what `findings/` notices in a program to findings at places in the text."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from jaxsight.compiler.protocol import Compiled
from jaxsight.engine.answers import Finding, Place, Severity
from jaxsight.engine.compiling import Result
from jaxsight.engine.definitions import Source
from jaxsight.engine.module import Module
from jaxsight.engine.pieces import tree_of
from jaxsight.engine.places import Places
from jaxsight.engine.views import View
from jaxsight.findings import jx303_jit_made_again
from jaxsight.findings.catalogue import CODES
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading
from jaxsight.findings.registry import OF_KERNELS, OF_PROGRAMS
from jaxsight.tracer.program import Body, Step
from jaxsight.tracer.protocol import Outlined, Span, Traced

log = logging.getLogger(__name__)


def of_program(view: View, outlined: Outlined, codes: Iterable[str]) -> Iterator[Finding]:
    """What the program itself shows, of the wanted codes."""
    yield from _found(view, outlined, None, [code for code in codes if code in OF_PROGRAMS])


def of_kernels(
    view: View, outlined: Outlined, result: Result, codes: Iterable[str]
) -> Iterator[Finding]:
    """What a target makes of it, of the wanted codes; nothing when it was not compiled."""
    if isinstance(result.outcome, Compiled):
        yield from _found(view, outlined, result, [code for code in codes if code in OF_KERNELS])


def of_text(module: Module) -> Iterator[Finding]:
    """What the text alone shows."""
    for chunk in module.chunks:
        if chunk.broken is not None or "jit" not in chunk.text:
            continue
        for again in jx303_jit_made_again.find(tree_of(chunk.text)):
            range = Source(chunk.text).range(again.node).shifted(chunk.first_line)
            code = CODES[jx303_jit_made_again.CODE]
            yield Finding(code.code, Severity(code.severity), range, again.message, code.url)


def _found(
    view: View, outlined: Outlined, result: Result | None, codes: Iterable[str]
) -> Iterator[Finding]:
    reply = view.answer.reply
    if not isinstance(reply, Traced):
        return
    places = Places(view, dict(_spans(outlined.program.body)))
    reading = Reading(
        name=view.subject.name,
        program=outlined.program,
        folds=outlined.folds,
        warnings=reply.warnings,
        quote=places.text,
        around=places.around,
        target=result.target if result is not None else None,
        compiled=result.outcome
        if result is not None and isinstance(result.outcome, Compiled)
        else None,
    )
    for code in codes:
        find = (OF_KERNELS if result is not None else OF_PROGRAMS)[code]
        try:
            noticed = list(find(reading))
        except Exception:
            log.exception("%s failed on %s", code, view.subject.name)
            continue
        for each in noticed:
            yield _finding(view, places, each)


def _finding(view: View, places: Places, noticed: Noticed) -> Finding:
    code = CODES[noticed.code]
    if noticed.span is not None:
        range = view.range_of(noticed.span)
    else:
        range = places.of(noticed.at) if noticed.at else None
    path = view.answer.question.path
    related = [
        Place(path, at, words)
        for other, words in noticed.related
        if (at := places.of(other)) is not None
    ]
    return Finding(
        code.code,
        Severity(noticed.severity or code.severity),
        range or view.name_range,
        noticed.message,
        code.url,
        tuple(related),
        view.stale,
    )


def _spans(body: Body) -> Iterator[tuple[str, Span | None]]:
    waiting: list[Step] = list(body.steps)
    while waiting:
        step = waiting.pop()
        yield step.path, step.span
        for inner in step.bodies:
            waiting += inner.steps
