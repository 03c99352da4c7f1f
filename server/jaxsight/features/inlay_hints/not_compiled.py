"""Why a function has no kernels, after its signature.

It is a part of others, of whose kernels it has a share; or the compile takes long, or failed.
"""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kernels import SIGN
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.kernels import uncompiled
from jaxsight.features.kernels.table import shares_of
from jaxsight.features.model import Hint
from jaxsight.text.inert import visible
from jaxsight.text.markdown import prose

INSTALL = "jaxsight.installTarget"


_NOTE = "A kernel counts for each function that it computes something of."


def _shares(shown: ShownDocument) -> Iterator[Hint]:
    """Yield the share of each function that is not compiled by itself, in the first program."""
    programs = [*filter(None, map(shown.kernels, shown.programs))]
    for view in shown.views:
        if view.compiled_as != "inside" or view.stale or shown.kernels(view) is not None:
            continue
        shares = list(shares_of(programs, view.subject_range))
        if shares:
            tooltip = prose("\n\n".join((*(share.words for share in shares), _NOTE)))
            yield Hint(head(view), f"{SIGN} {shares[0].label}", tooltip)


def hints(shown: ShownDocument) -> Iterator[Hint]:
    """Yield why nothing was compiled, or once that takes a moment, that it is being compiled."""
    yield from _shares(shown)
    programs, first = shown.engine.programs, shown.engine.choices.target(shown.document.path)
    for view in shown.views:
        if view.stale or not view.is_traced:
            continue
        refusal = programs.refusal(view)
        if refusal is not None:
            trouble, target = refusal.trouble, refusal.target
            if trouble.kind == "approval":
                continue  # the hint about consent says it
            is_missing = trouble.kind == "missing"
            yield Hint(
                head(view),
                f"{SIGN} {visible(target.name)}: {uncompiled.label(trouble, target)}",
                prose(uncompiled.explanation(trouble, target)),
                command=INSTALL if is_missing else "",
                arguments=(target.platform, shown.document.path) if is_missing else (),
            )
        elif shown.kernels(view) is None and programs.compiles_long(view):
            yield Hint(
                head(view),
                f"{SIGN} {visible(first.name)}: compiling…",
                "Kernels, launches and memory follow when XLA is done.",
            )


KIND = HintKind(("kernels",), hints, needs_kernels=True)
