"""Where a trace ends whose inputs the user did not write, and why a function shows nothing at all.

These are hints, not errors. The latter follow once the calls of the file's functions are known.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.examples.jax_use import JaxUse
from jaxsight.features import inputs
from jaxsight.features.findings import failures
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head, head_of, line_end
from jaxsight.features.inputs import ReachedPlaces
from jaxsight.features.model import Hint
from jaxsight.features.setup.unshown import PROPOSES, is_without_inputs, why_untraced
from jaxsight.text.inert import clause, one_line
from jaxsight.text.markdown import prose

LABEL = "⊘ not traced further"
_LONGEST = 60
"""Characters of a reason, a choice: it follows a signature."""


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the hints of functions that are traced in part, and of those that are not at all."""
    yield from _ends(shown)
    if shown.engine.dry_runs.is_current(shown.document):
        yield from _reasons(shown)


def _ends(shown: ShownDocument) -> Iterator[Hint]:
    """Yield a mark with the error, where it was raised or after the signature."""
    for view in inputs.without_repeats(shown.views):
        if view.stale or not failures.is_quiet(view) or view.subject.is_proposed:
            continue
        finding = next(failures.findings(view), None)
        if finding is None:
            continue
        is_inside = finding.range != view.name_range
        place = line_end(view.module, finding.range.end.line) if is_inside else head(view)
        why = failures.explanation(view)
        given = one_line(view.set_name) or "inputs that were not written for it"
        yield Hint(place, LABEL, f"{why}\n\n{prose(f'traced {given}')}")


def _reasons(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the reason of each function without inputs that no trace has reached."""
    engine, document = shown.engine, shown.document
    # Of stale views only those count of which hints are left.
    kept = inputs.without_repeats(shown.views)
    views = [v for v in shown.views if not v.stale or (v in kept and v.supports_any())]
    having = {
        subject.name for subject in engine.documents.subjects(document) if subject.examples.sets
    }
    jax_use, unreached = JaxUse.of(document.module), engine.dry_runs.unreached(document)
    reached = ReachedPlaces(views)  # a failed trace shows shapes up to the error
    for placed in document.module.functions:
        function = placed.function
        if function.qualname in having or reached.by(placed):
            continue
        if not jax_use.shows(*placed) or function.qualname in document.hidden:
            continue
        reason = why_untraced(engine, document, function.qualname, unreached)
        tooltip = prose(f"not shown: {reason}")
        # Where none are proposed, the action says what to try.
        more = f"\n\n{PROPOSES}." if is_without_inputs(reason) else ""
        place = head_of(document.module, placed.name_range, placed.range)
        yield Hint(place, f"not shown: {clause(reason, _LONGEST)}", f"{tooltip}{more}")


KIND = HintKind(("shapes",), hints)
