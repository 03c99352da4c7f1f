"""The finding of a function whose program differs between the processes of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.queries.processes.comparison import ProcessDifference
from jaxsight.queries.processes.explorer import PROCESSES
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.rules.rule import DifferingPrograms, Rule
from jaxsight.rules.violation import NodeViolation
from jaxsight.source.source_text import SourceText
from jaxsight.source.statements import tree_of


def of_processes(
    view: View, difference: ProcessDifference, rules: Sequence[Rule]
) -> Iterator[Finding]:
    """Yield the finding at what decides, else where the programs differ, or at the name."""
    module = view.module
    place = view.range_of(difference.span) if difference.span is not None else None
    at = (place or view.name_range).start
    column = len(module.line(at.line)[: at.column].encode())
    try:
        tree = tree_of(module.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    differing = DifferingPrograms(
        difference.decides,
        difference.process,
        PROCESSES,
        difference.primitive,
        module.slice_text(place) if place is not None else "",
        tree,
        (at.line + 1, column),
    )
    for rule in rules:
        if rule.explain_processes is None:
            continue
        violation = rule.explain_processes(differing)
        range = place or view.name_range
        if isinstance(violation, NodeViolation):
            range = SourceText(module.text).range(violation.node)
        yield finding_of(
            rule.code,
            range,
            violation.message,
            help=violation.help,
            notes=violation.notes,
            data=violation.data,
            stale=view.stale,
        )
