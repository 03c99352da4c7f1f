"""Where a trace failed whose inputs the user did not write: a hint, not an error."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.findings import failures
from jaxsight.features.hover import called
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head, line_end
from jaxsight.features.model import Hint
from jaxsight.text.inert import one_line
from jaxsight.text.markdown import prose

LABEL = "⊘ not traced further"


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield a mark with the error, where it was raised or after the signature."""
    for view in called.without_repeats(shown.views):
        if view.stale or not failures.is_quiet(view) or view.subject.is_proposed:
            continue
        finding = next(failures.findings(view), None)
        if finding is None:
            continue
        is_inside = finding.range != view.name_range
        place = line_end(view.module, finding.range.end.line) if is_inside else head(view)
        why = failures.explanation(view)
        inputs = one_line(view.set_name) or "inputs that were not written for it"
        yield Hint(place, LABEL, f"{why}\n\n{prose(f'traced {inputs}')}")


KIND = HintKind(("shapes",), hints)
