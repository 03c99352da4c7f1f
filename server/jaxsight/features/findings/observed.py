"""Errors that a file's own program raises, as findings at the innermost line of the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.features.findings import failures
from jaxsight.queries.documents import Document
from jaxsight.queries.dry_runs.own_program import LocatedError
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.explain_failure import explain
from jaxsight.rules.finding import Finding, Severity, finding_of

_CONDITION = "a statement before it did not run here as it does in the program"


def findings(
    engine: Engine, document: Document, views: Sequence[View], known: Sequence[Finding]
) -> list[Finding]:
    """Return the errors of the file's own program that are not known, as those of a trace."""
    raised = [*_findings(engine, document, views)]
    return [each for each in raised if not any(other.repeats(each) for other in known)]


def _findings(engine: Engine, document: Document, views: Sequence[View]) -> Iterator[Finding]:
    """Yield the errors of the file's own program.

    A trace of the function that fails knows the types of the operands, so its words are better.
    """
    is_stale = not engine.dry_runs.is_current(document)
    explained = [each for view in views if not view.is_traced for each in failures.findings(view)]
    for error in engine.dry_runs.errors(document):
        found = _finding(error, document)
        same = (each for each in explained if each.range == found.range and each.code == found.code)
        if (better := next(same, None)) is not None:
            message, help, notes = better.message, better.help, better.notes
            found = replace(found, message=message, help=help, notes=notes)
        if not error.is_certain:
            found = replace(found, notes=(*found.notes, _CONDITION))
        yield replace(found, stale=is_stale)


def _finding(error: LocatedError, document: Document) -> Finding:
    module, failure = document.module, error.failure
    _, range = error.places[-1]
    rule, violation = explain(failure, module.slice_text(range), module.line(range.start.line))
    related = failures.related_places(failure, document.path, error.places)
    found = finding_of(
        rule.code,
        range,
        violation.message,
        severity=Severity.ERROR if error.is_certain else Severity.INFORMATION,
        help=violation.help,
        notes=violation.notes,
    )
    return replace(
        found, url=violation.url or rule.url, related=tuple(related), data=violation.data
    )
