"""Why a function has no kernels, after its signature: the compile takes long, or failed."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.features.inlay_hints.kernels import SIGN
from jaxsight.features.inlay_hints.kind import HintKind, ShownDocument
from jaxsight.features.inlay_hints.places import head
from jaxsight.features.kernels import uncompiled
from jaxsight.features.model import Hint
from jaxsight.queries.traces.located_answer import View
from jaxsight.text.inert import visible
from jaxsight.text.markdown import prose
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.compilation.compilers import Trouble

INSTALL = "jaxsight.installTarget"


def _hints(shown: ShownDocument) -> Iterator[Hint]:
    for view in shown.views:
        if view.stale or not isinstance(view.answer.reply, Traced):
            continue
        refusal = shown.engine.programs.refusal(view)
        if refusal is not None and isinstance(refusal.outcome, Trouble):
            trouble, target = refusal.outcome, refusal.target
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
        elif shown.kernels(view) is None:
            yield from _compiling(shown, view)


def _compiling(shown: ShownDocument, view: View) -> Iterator[Hint]:
    """Yield that a function without kernels is being compiled, once that takes a moment."""
    targets = shown.engine.choices.targets(shown.document.path)
    if targets and shown.engine.programs.compiles_long(view):
        yield Hint(
            head(view),
            f"{SIGN} {visible(targets[0].name)}: compiling…",
            "Kernels, launches and memory follow when XLA is done.",
        )


KIND = HintKind(("kernels",), _hints, needs_kernels=True)
