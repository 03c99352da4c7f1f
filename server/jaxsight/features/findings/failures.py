"""Turn a failed trace into findings at the places in the text where it failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.explain_failure import explain, rule_of_crashes
from jaxsight.rules.failure_text import divided
from jaxsight.rules.finding import Finding, Place, Severity, finding_of
from jaxsight.rules.rule import NodeViolation, Rule, Violation
from jaxsight.source.text import Position, Range
from jaxsight.text.inert import words
from jaxsight.text.markdown import prose
from jaxsight.wire import observations
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.wire.observations import Failure, Frame
from jaxsight.workers.results import Died


def finding_from(
    rule: Rule,
    range: Range,
    violation: Violation | NodeViolation,
    *,
    severity: Severity | None = None,
    notes: Iterable[str] = (),
    related: Iterable[Place] = (),
    stale: bool = False,
) -> Finding:
    """Return the finding of a violation at its place in the text."""
    return Finding(
        rule.code,
        severity or Severity(violation.severity or rule.severity),
        range,
        violation.message,
        (violation.url if isinstance(violation, Violation) else "") or rule.url,
        tuple(related),
        stale,
        violation.help,
        (*violation.notes, *notes),
        violation.data,
    )


def findings(view: View) -> Iterator[Finding]:
    """Yield the error that ended a trace; nothing if the trace succeeded, or was a dry run."""
    match view.answer.reply:
        case Traced() | Failed(failure=Failure(stage=observations.DRY_RUN)):
            return
        case Died() as died:
            message, notes = divided(died.message)
            yield finding_of(
                rule_of_crashes().code,
                view.name_range,
                message,
                severity=_severity(view),
                help=died.help,
                notes=(*notes, *died.notes),
                stale=view.stale,
            )
        case Failed(failure=failure):
            yield _finding(failure, view)


def reported(view: View, in_text: Sequence[Finding] = ()) -> Iterator[Finding]:
    """Yield the findings of an answer that are worth reporting, but those that the text explains.

    Where both say the same of two lines, the text names the cause and the trace the call. An effect
    that jaxsight refuses is no error of the user.
    """
    reply = view.answer.reply
    if is_quiet(view):
        return
    if isinstance(reply, Failed) and reply.failure.was_refused:
        return
    for finding in findings(view):
        said = finding.code, finding.message
        if all(each.repeats(finding) for each in in_text if (each.code, each.message) == said):
            yield finding


def is_quiet(view: View) -> bool:
    """Return whether a failure is no error of the user, who did not write the inputs.

    A function that was only called may need what its caller does around the call, or is not there
    to be traced.
    """
    chosen, examples = view.answer.question.set, view.subject.examples
    return chosen.may_fail or bool(chosen.assumed) or not examples.are_written


def explanation(view: View) -> str:
    """Return the error with its help and notes as Markdown, for a hover; empty for a trace."""
    if (finding := next(findings(view), None)) is None:
        return ""
    return "\n\n".join((_line_of(finding, view), *map(prose, finding.lines[1:])))


def summary(view: View) -> str:
    """Return the error as one line of Markdown, without help and notes."""
    finding = next(findings(view), None)
    return _line_of(finding, view) if finding is not None else ""


def _line_of(finding: Finding, view: View) -> str:
    link = f" ([{finding.code}]({finding.url}))" if finding.url else f" ({finding.code})"
    line = f", line {finding.range.start.line + 1}" if finding.range != view.name_range else ""
    return f"{prose(finding.message)}{link}{line}"


def of_interpreter(reply: Failed | Died) -> str:
    """Return why a user's jaxpr interpreter produced no output."""
    match reply:
        case Died() as died:
            return died.message
        case Failed(failure=failure) if failure.type.startswith("jaxsight."):
            return failure.message
        case Failed(failure=failure):
            said = f"{failure.type}: {words(failure.message)}"
            at = failure.frames[-1] if failure.frames else None
            return f"{said} ({at.file}, line {at.line})" if at is not None else said


_NO_CUDNN = "cuDNN is not detected"
"""The beginning of the error of `jax.nn.dot_product_attention(…, implementation="cudnn")`.

`check_cudnn_version` in `jax/_src/cudnn` looks for cuDNN in the tracing process, and only an
installation for GPUs has it.
"""

_NEEDS_CUDNN = Violation(
    "cuDNN attention can be traced only on a machine with the GPU and cuDNN",
    help='use `implementation="xla"` to trace it on this machine',
)


_UNDEFINED = re.compile(r"name '(\w+)' is not defined.*", re.DOTALL)
_RUNS = "add `# jaxsight: always` to line {} to run it"


def _severity(view: View) -> Severity:
    """Return `error` where the user wrote example inputs, else `information`.

    Doctests and annotations were written for other purposes, and calls were observed.
    """
    meant = view.answer.question.subject.examples.source in ("docstring", "class", "project")
    return Severity.ERROR if meant else Severity.INFORMATION


def _finding(failure: Failure, view: View) -> Finding:
    path = view.answer.question.path
    here = places(failure, view)
    if failure.stage == "inputs":
        range = view.argument_range(failure.argument)
    elif here:
        range = here[-1][1]
    else:
        range = view.name_range
    module = view.module
    expression = module.slice_text(range) if here and failure.stage != "inputs" else ""
    line = module.line(range.start.line) if expression else ""
    readable = replace(
        failure,
        message=view.words(failure.message),
        operands=_operands(view, range, line) if expression else (),
    )
    rule, violation = explain(readable, expression, line)
    related = related_places(failure, path, here)
    if here and failure.stage == "trace":
        name = view.answer.question.subject.name
        words = f"while tracing `{name}` with its example inputs"
        related.append(Place(path, view.name_range, words))
    if absent := failure.stage in ("execute", "trace") and failure.message.startswith(_NO_CUDNN):
        violation = _NEEDS_CUDNN
    violation = _with_skipped(violation, failure, view)
    severity = Severity.INFORMATION if absent else _severity(view)
    return finding_from(
        rule, range, violation, severity=severity, related=related, stale=view.stale
    )


def places(failure: Failure, view: View) -> list[tuple[Frame, Range]]:
    """Return the frames of a traceback that are in the file, outermost first, with their places."""
    return [
        (frame, range)
        for frame in failure.frames
        if frame.span is not None and (range := view.range_of(frame.span)) is not None
    ]


def related_places(failure: Failure, path: str, here: Sequence[tuple[Frame, Range]]) -> list[Place]:
    """Return the places of a traceback besides the innermost one in the file.

    Args:
        failure: the exception.
        path: the file.
        here: its frames in the file, outermost first.
    """
    related = [
        Place(path, place, f"called from here in `{frame.function}`") for frame, place in here[:-1]
    ]
    related += [
        Place(
            frame.file,
            # The text of another file is not available: the range is the whole line.
            Range(Position(frame.line - 1, 0), Position(frame.line, 0)),
            f"also in the traceback, in `{frame.function}`",
        )
        for frame in failure.frames
        if frame.span is None and frame.file != path
    ]
    return related


def _operands(view: View, around: Range, line: str) -> tuple[tuple[str, str], ...]:
    """Return the sources and types of the expressions in a range that had one type each.

    What is unpacked follows the targets: the rest of a line counts.
    """
    types: dict[str, set[str]] = {}
    end = around.end
    if end.line == around.start.line:
        end = Position(end.line, len(line))
    for place, observation in view.observed.items():
        if around.start <= place.start and place.end <= end and place != around:
            seen = {value.text for value in view.values(observation)}
            more = {""} if observation.more else set()
            types.setdefault(view.module.slice_text(place), set()).update(seen | more)
    return tuple((source, seen.pop()) for source, seen in types.items() if len(seen) == 1)


def _with_skipped(violation: Violation, failure: Failure, view: View) -> Violation:
    """Return the error with the statement that should have bound a missing name, if there is one.

    The file defines the name, but the statement did not run here, or not to its end.
    """
    missing = _UNDEFINED.fullmatch(failure.message)
    for caveat in view.caveats if missing else ():
        chunk = view.module.chunk_at(caveat.range.start)
        if chunk is not None and missing is not None and missing[1] in chunk.name_effects.binds:
            line = caveat.range.start.line + 1
            notes = (f"line {line}: {caveat.reason}", *violation.notes)
            runs = "" if " raised " in caveat.reason else _RUNS.format(line)
            return replace(violation, notes=notes, help=violation.help or runs)
    return violation
