"""Check contracts, the `Expect` lines of docstrings, against the compiled programs."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator, Mapping

from jaxsight.examples.notation.contracts import (
    HOST_MOVED,
    HOST_TRANSFERS,
    METRICS,
    Expect,
    MetricDemand,
)
from jaxsight.examples.sets import ExampleSet
from jaxsight.figures import collectives, host_transfers
from jaxsight.figures.metrics import COLLECTIVES, Metric, collectives_of, metric_of
from jaxsight.figures.summary import devices
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.rules.jx501_broken_contract.rule import RULE
from jaxsight.targets.target import UnknownTarget, parse
from jaxsight.text import units
from jaxsight.text.inert import clause
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.results import Died

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}

_WORDS = 300
"""Characters of a compiler's error in a note, a choice: XLA's may quote the whole HLO."""
_MOST_NOTES = 4
"""Collectives or transfers that a finding lists, a choice: each is a line of the problem list."""


def checks(engine: Engine, document: Document, only: str = "") -> list[asyncio.Task[list[Finding]]]:
    """Begin to check contracts concurrently, because one may take long.

    Args:
        engine: the engine.
        document: the document whose contracts are checked.
        only: the function whose contracts are checked, if not those of all.
    """
    tasks = [
        asyncio.ensure_future(_check(engine, document, subject, example_set, expect))
        for subject in engine.documents.subjects(document)
        if only in ("", subject.id)
        for example_set in subject.examples.sets
        for expect in example_set.expects
    ]
    for task in tasks:
        engine.waiting.hold(task)
    return tasks


async def _check(
    engine: Engine, document: Document, subject: Subject, example_set: ExampleSet, expect: Expect
) -> list[Finding]:
    """Return the broken conditions of a contract with its example set."""
    module = document.module
    question = await engine.traces.question(document, subject, example_set)
    if isinstance(question, Unasked):
        return []
    try:
        answer = await engine.traces.answer(question)
    except Superseded:
        return []
    view = View(answer, module, question, subject)
    name = expect.target.strip()
    try:
        target = parse(name) if name else engine.choices.target(question.path)
    except UnknownTarget as error:
        place, severity = subject.place(expect.range), Severity.ERROR
        return [finding_of("JX908", place, error.message, severity=severity, help=error.help)]
    if not isinstance(answer.reply, Traced):
        # The active set's error is reported by itself; an external error may be temporary.
        external = isinstance(answer.reply, Died) and answer.reply.external
        if external or engine.traces.is_chosen(view):
            return []
        note = f"the error is reported in `{view.subject.name}`"
        return [_unchecked(view, expect, "tracing fails with these example inputs", note)]
    is_about_memory = any(condition.metric == "temp" for condition in expect.conditions)
    result = await engine.programs.held_result(view, target, with_memory=is_about_memory)
    return list(findings(view, expect, result)) if result is not None else []


def findings(view: View, expect: Expect, result: Compilation) -> Iterator[Finding]:
    """Report the broken conditions of a contract, or why it cannot be checked."""
    on = result.target.short
    if isinstance(result, Refused):
        why = clause(result.trouble.message, _WORDS)
        yield _unchecked(view, expect, f"not compiled for {on}", why)
        return
    if result.is_unfolded:
        yield _unchecked(view, expect, f"constant folding for {on} takes too long")
        return
    for condition, message, notes in _broken(expect, result):
        yield finding_of(
            RULE.code,
            view.subject.place(condition.range),
            message,
            help="update the contract if this change is intended",
            notes=notes,
        )


def _unchecked(view: View, expect: Expect, why: str, *notes: str) -> Finding:
    """Return the finding of a contract that cannot be checked."""
    place, message = view.subject.place(expect.range), f"contract cannot be checked: {why}"
    return finding_of(RULE.code, place, message, severity=Severity.WARNING, notes=notes)


def _holds(condition: MetricDemand, figure: Metric) -> bool:
    """Return whether a figure is known to be as a contract demands, at its upper end."""
    comparison, value = condition.comparison, condition.value
    if figure.most >= 0:
        return _COMPARISONS[comparison](figure.most, value)
    return comparison in (">=", ">") and _COMPARISONS[comparison](figure.least, value)


def _broken(
    expect: Expect, kernels: LocatedFigures
) -> Iterator[tuple[MetricDemand, str, tuple[str, ...]]]:
    """Yield the broken conditions, each with message and notes."""
    on, several = devices(kernels.compiled, kernels.target), kernels.compiled.devices > 1
    for condition in expect.conditions:
        metric = condition.metric
        figure = metric_of(kernels, metric)
        limit = f"{metric} {condition.comparison} {_worded(metric, condition.value)}"
        if _holds(condition, figure):
            continue
        per_device = " per device" if several and METRICS[metric] == "bytes" else ""
        notes: tuple[str, ...] = (figure.unknown_because,)
        if figure.most >= 0:
            worded = _worded(metric, figure.most)
            is_rounded = figure.most != condition.value
            if is_rounded and worded == _worded(metric, condition.value):
                worded = f"{figure.most:,} B"  # else it would read as the limit
            got = f"{'up to ' if figure.least < figure.most else ''}{worded}{per_device}"
            notes = tuple(filter(None, (figure.note, *_notes(metric, kernels))))
        elif figure.least > 0:
            got = f"at least {_worded(metric, figure.least)}{per_device}"
        else:
            got = "an unknown number"
        yield condition, f"expected {limit} on {on}, got {got}", notes


def _worded(metric: str, value: int) -> str:
    return units.size(value) if METRICS[metric] == "bytes" else str(value)


def _notes(metric: str, kernels: LocatedFigures) -> Iterator[str]:
    """Yield what explains a figure: the largest collectives or transfers that it counts."""
    if metric == "moved" or metric == "collectives" or metric in COLLECTIVES:
        counted = collectives_of(kernels.graph, metric)
        largest = sorted(counted, key=lambda pair: pair[0].runs * pair[1].bytes, reverse=True)
        for kernel, collective in largest[:_MOST_NOTES]:
            # `all-reduce 32 MiB over data, inserted by the partitioner at line 12`
            (text,) = collectives.summed([kernel], kernels.graph)
            line = collectives.line(kernels, kernel)
            who = ", inserted by the partitioner" if collective.inserted else ""
            yield f"{text}{who}{f' at line {line}' if line is not None else ''}"
        if len(largest) > _MOST_NOTES:
            yield f"and {len(largest) - _MOST_NOTES} more"
    if metric in (HOST_TRANSFERS, HOST_MOVED):
        yield from host_transfers.largest(kernels, _MOST_NOTES)
