"""What functions have of the kernels of a program, after their signatures."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kernels import SIGN
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.kernels.shares import shares_of
from jaxsight.features.model import Hint
from jaxsight.text.markdown import prose

_NOTE = "A kernel counts for each function that it computes something of."


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the share of each function that is not compiled by itself, in the first program."""
    programs = [
        kernels
        for view in shown.views
        if not (view.compiled_as or view.stale) and (kernels := shown.kernels(view)) is not None
    ]
    for view in shown.views:
        if view.compiled_as != "inside" or view.stale or shown.kernels(view) is not None:
            continue
        shares = list(shares_of(programs, view.subject_range))
        if shares:
            tooltip = prose("\n\n".join((*(share.words for share in shares), _NOTE)))
            yield Hint(head(view), f"{SIGN} {shares[0].label}", tooltip)


KIND = HintKind(("kernels",), hints, needs_kernels=True)
