"""From what `findings/` notices in a program to findings at places in the text."""

from __future__ import annotations

import ast
import logging
from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

from jaxsight.compiler.protocol import Compiled, Folding
from jaxsight.engine.answers import Finding, Place, Severity
from jaxsight.engine.compiling import Result
from jaxsight.engine.definitions import Source
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.pieces import Piece, tree_of
from jaxsight.engine.places import Places
from jaxsight.engine.text import Range
from jaxsight.engine.views import View
from jaxsight.findings import (
    jx102_folded_while_compiling,
    jx303_jit_made_again,
    jx413_miscompiled,
)
from jaxsight.findings.catalogue import CODES
from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import Reading
from jaxsight.findings.registry import OF_KERNELS, OF_PROGRAMS
from jaxsight.tracer.program import Body, Step
from jaxsight.tracer.protocol import (
    InputSpec,
    Miscompiled,
    Outlined,
    Span,
    Traced,
    TreeSpec,
    ValueSpec,
)

log = logging.getLogger(__name__)

TOO_LARGE = "JX914"
FOLDING = jx102_folded_while_compiling.CODE


def of_program(view: View, outlined: Outlined, codes: Iterable[str]) -> Iterator[Finding]:
    """What the program itself shows, of the wanted codes."""
    yield from _found(view, outlined, None, [code for code in codes if code in OF_PROGRAMS])


def of_kernels(
    view: View,
    outlined: Outlined,
    result: Result,
    codes: Iterable[str],
    folding: Folding | None = None,
) -> Iterator[Finding]:
    """What a target makes of it, of the wanted codes; nothing when it was not compiled.

    Args:
        folding: what was measured of constant folding. Of a program that was compiled without it
            nothing else is found: its kernels are not those that the user's own compile gives.
    """
    if not isinstance(result.outcome, Compiled):
        return
    known = (FOLDING,) if result.is_unfolded else OF_KERNELS
    yield from _found(view, outlined, result, [code for code in codes if code in known], folding)


def of_running(view: View, wrong: Miscompiled, found: Iterable[Finding]) -> Iterator[Finding]:
    """What running a function showed to be compiled wrongly, at its name; nothing where one of `found` says so of its parts."""
    code = CODES[jx413_miscompiled.CODE]
    if all(each.code != code.code for each in found):
        message = jx413_miscompiled.seen(wrong)
        yield Finding(
            code.code,
            Severity(code.severity),
            view.name_range,
            message,
            code.url,
            stale=view.stale,
        )


def of_text(chunk: ModuleChunk) -> Iterator[Finding]:
    """What the text of a statement alone shows."""
    code = CODES[jx303_jit_made_again.CODE]
    for range, message in _jits_made_again(chunk.piece):
        place = range.shifted(chunk.first_line)
        yield Finding(code.code, Severity(code.severity), place, message, code.url)


def _jits_made_again(piece: Piece) -> tuple[tuple[Range, str], ...]:
    if piece.broken is not None or "jit" not in piece.text:
        return ()
    found = _jits.get(piece)
    if found is None:
        source = Source(piece.text)
        found = _jits[piece] = tuple(
            (source.range(again.node), again.message)
            for again in jx303_jit_made_again.find(tree_of(piece.text))
        )
    return found


_jits: WeakKeyDictionary[Piece, tuple[tuple[Range, str], ...]] = WeakKeyDictionary()
"""What was found in the pieces that are in use: their trees are not kept."""


def of_size(module: Module) -> Iterator[Finding]:
    """What is not analyzed because it is too large."""
    for problem in module.unread:
        code = CODES[TOO_LARGE]
        yield Finding(code.code, Severity(code.severity), problem.range, problem.message, code.url)


def _found(
    view: View,
    outlined: Outlined,
    result: Result | None,
    codes: Iterable[str],
    folding: Folding | None = None,
) -> Iterator[Finding]:
    reply = view.answer.reply
    if not isinstance(reply, Traced):
        return
    places = Places(view, dict(_spans(outlined.program.body)))
    reading = Reading(
        name=view.subject.name,
        program=outlined.program,
        folds=outlined.folds,
        folding=folding,
        runtime=outlined.runtime,
        exact=not view.caveats,
        numbers=frozenset(_numbers([each.spec for each in view.answer.question.trace.arguments])),
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


def _numbers(specs: Iterable[InputSpec]) -> Iterator[str]:
    """Yield the type of each Python number in example inputs, displays included."""
    for spec in specs:
        if isinstance(spec, TreeSpec):
            yield from _numbers(spec.children)
        elif isinstance(spec, ValueSpec) and spec.literal:
            try:
                value = ast.literal_eval(spec.source.strip())
            except (ValueError, SyntaxError):
                continue
            if type(value) in (int, float, complex):
                yield type(value).__name__


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
