"""Check contracts, the `Expect` lines of docstrings, against the compiled programs."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Collection, Iterator, Mapping

from jaxsight.examples import ExampleSet
from jaxsight.examples.notation.contracts import METRICS, Condition, Expect
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.compile_result import Result
from jaxsight.queries.programs.kernels import folded
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.query import Unasked
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.rules.jx501_broken_contract.rule import RULE
from jaxsight.source.text import Range
from jaxsight.targets.target import CPU, Target, UnknownTarget, names, parse
from jaxsight.text import units
from jaxsight.text.inert import clause
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.results import Died

_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


def checks(engine: Engine, document: Document) -> list[asyncio.Task[list[Finding]]]:
    """Begin to check all contracts of a document concurrently, because one may take long."""
    tasks = [
        asyncio.ensure_future(_check(engine, document, subject, example_set, expect))
        for subject in engine.documents.subjects(document)
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
        answer = await engine.traces.answer(question, waiting=False)
    except Superseded:
        return []
    view = View(answer, module, question, subject)
    try:
        target = target_of(expect, engine.choices.targets(question.path)[0])
    except UnknownTarget as error:
        return [wrong_target(view, expect, error)]
    if not isinstance(answer.reply, Traced):
        # The active set's error is reported by itself; an external error may be temporary.
        external = isinstance(answer.reply, Died) and answer.reply.external
        silent = external or engine.traces.is_chosen(view)
        return [] if silent else [untraced(view, expect)]
    is_about_memory = any(condition.metric == "temp" for condition in expect.conditions)
    result = await engine.programs.held_result(view, target, with_memory=is_about_memory)
    return list(findings(view, expect, result)) if result is not None else []


def target_of(expect: Expect, default: Target) -> Target:
    """Return the target of a contract, by its short (`h100`) or full name (`cuda:h100`).

    Args:
        default: the target of a contract without one.

    Raises:
        UnknownTarget: no target has this name.
    """
    name = expect.target.strip()
    if not name:
        return default
    for full_name in names():
        if name.lower() == parse(full_name).short and full_name != CPU:
            return parse(full_name)
    return parse(name)


def wrong_target(view: View, expect: Expect, error: UnknownTarget) -> Finding:
    """Report a contract for a target that does not exist."""
    return _finding(view, expect, "JX908", error.message, help=error.help)


def untraced(view: View, expect: Expect) -> Finding:
    """Report a contract of an example set that the function cannot be traced with."""
    return _finding(
        view,
        expect,
        RULE.code,
        "contract cannot be checked: tracing fails with these example inputs",
        Severity.WARNING,
        notes=(f"the error is reported in `{view.subject.name}`",),
    )


def findings(view: View, expect: Expect, result: Result) -> Iterator[Finding]:
    """Report the broken conditions of a contract, or why it cannot be checked."""
    on = result.target.short
    if isinstance(result.outcome, Compiled) and result.is_unfolded:
        message = f"contract cannot be checked: constant folding for {on} takes too long"
        yield _finding(view, expect, RULE.code, message, Severity.WARNING)
        return
    if not isinstance(result.outcome, Compiled):
        message = f"contract cannot be checked: not compiled for {on}"
        why = clause(result.outcome.message, 300)
        yield _finding(view, expect, RULE.code, message, Severity.WARNING, notes=(why,))
        return
    compiled = result.outcome
    figures = {
        "kernels": compiled.graph.kernel_count,
        "launches": compiled.graph.launch_count if compiled.graph.launches_known else -1,
        "temp": compiled.memory.temporaries,
        "folded": folded(compiled),
    }
    graph = compiled.graph
    upper = ("launches",) if graph.launches_at_least < graph.launch_count else ()
    for condition, message, notes in _broken(expect, figures, on, _worded, upper):
        yield finding_of(
            RULE.code,
            _place(view, condition.range),
            message,
            help="update the contract if this change is intended",
            notes=notes,
        )


def _worded(metric: str, value: int) -> str:
    return units.size(value) if METRICS[metric] == "bytes" else str(value)


def _finding(
    view: View,
    expect: Expect,
    code: str,
    message: str,
    severity: Severity = Severity.ERROR,
    *,
    help: str = "",
    notes: tuple[str, ...] = (),
) -> Finding:
    place = _place(view, expect.range)
    return finding_of(code, place, message, severity=severity, help=help, notes=notes)


def _place(view: View, range: Range) -> Range:
    """Return the range of a part of the docstring.

    For examples from the project's settings, this is the function's name.
    """
    if view.subject.examples.source == "project":
        return view.name_range
    return range.shifted(view.subject.chunk.first_line)


def _broken(
    expect: Expect,
    figures: Mapping[str, int],
    target: str,
    worded: Callable[[str, int], str],
    upper: Collection[str] = (),
) -> Iterator[tuple[Condition, str, tuple[str, ...]]]:
    """Yield the broken conditions, each with message and notes.

    Args:
        figures: by metric (`kernels`, `launches`, and `temp` and `folded` in bytes); -1 for unknown
        ones.
        target: the short name of their target.
        worded: formats a figure of a metric.
        upper: the metrics whose figure is the upper end of a range.
    """
    for condition in expect.conditions:
        figure = figures[condition.metric]
        limit = (
            f"{condition.metric} {condition.comparison} {worded(condition.metric, condition.value)}"
        )
        if figure < 0:
            notes = ("the program has a loop of unknown length",)
            yield condition, f"expected {limit} on {target}, got an unknown number", notes
        elif not _COMPARISONS[condition.comparison](figure, condition.value):
            got = worded(condition.metric, figure)
            up_to = "up to " if condition.metric in upper else ""
            yield condition, f"expected {limit} on {target}, got {up_to}{got}", ()
