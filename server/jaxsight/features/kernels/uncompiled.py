"""Functions that have example inputs and were not compiled, each with its reason in a clause."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.features.findings import failures
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.located_figures import Compilation, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.source.text import Range
from jaxsight.targets.target import Target
from jaxsight.text.inert import clause, visible
from jaxsight.text.terminal import instruction
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.compilation.compilers import Trouble
from jaxsight.workers.compilation.environments import MEGABYTES

_LONGEST = 200
"""Maximum length of a reason in characters: some of XLA's quote HLO."""
_LABEL = 70
"""The same for a hint, a choice: beside a line of code it is still in view."""


def label(trouble: Trouble, target: Target) -> str:
    """Return why nothing is compiled for a target, in a few words for a hint."""
    if trouble.kind == "missing":
        return "compiler not installed"
    reason = trouble.message.strip().split("\n")[0]
    for name in (target.short, target.name):
        reason = reason.replace(f" for {name} ", " ", 1)
    return clause(reason, _LABEL).rstrip(".")


def explanation(trouble: Trouble, target: Target) -> str:
    """Return why nothing is compiled for a target, for an editor, and what to do."""
    if trouble.kind != "missing":
        return trouble.message
    action = "use the command `jaxsight.installTarget` (*Install Compiler* in VS Code)"
    command = instruction(f"targets install {target.platform}", "")
    return (
        f"The compiler for {target.name} is not installed (about "
        f"{MEGABYTES[target.platform]} MB to download). To install it, {action}"
        + (f", or {command} in a terminal." if command else ".")
    )


@dataclass(frozen=True, slots=True)
class Uncompiled:
    """A function that was not compiled; `range` is its name."""

    function: str
    range: Range
    target: str
    """The short name of the target: `h100`."""
    reason: str
    lasts: bool = True
    """Whether it is so again: no compiler was missing, and none failed for another reason."""

    @property
    def message(self) -> str:
        """A sentence such as ``f` is not compiled for h100: it spans 8 devices``."""
        name = visible(self.function)
        return f"`{name}` is not compiled for {self.target}: {self.reason}"

    @staticmethod
    def of(view: View, result: Compilation | None, target: str) -> Uncompiled | None:
        """Return why a function was not compiled; `None` if it was, or if nobody asked for that.

        Args:
            result: the result of compiling it; `None` if that was not requested.
            target: the active target.
        """
        lasts = True
        if not isinstance(view.answer.reply, Traced):
            finding = next(failures.reported(view), None)
            if finding is None:
                return None  # a doctest that was not written as example inputs
            reason = f"tracing fails ({finding.code}, line {finding.range.start.line + 1})"
        elif isinstance(result, Refused):
            target, reason = result.target.short, result.trouble.message
            lasts = result.trouble.last
        else:
            return None
        reason = clause(reason.strip().split("\n\n")[0], _LONGEST).rstrip(".")
        return Uncompiled(view.subject.name, view.name_range, target, reason, lasts)


async def uncompiled(engine: Engine, path: str) -> list[Uncompiled]:
    """Return the functions of a file that were not compiled for the first target, and why.

    They are those of the last findings.
    """
    document = await engine.documents.read(path)
    if document is None:
        return []
    target = engine.choices.target(path).short
    reasons = (
        Uncompiled.of(view, engine.programs.refusal(view), target)
        for view in await engine.traces.views(document, None)
    )
    return [reason for reason in reasons if reason is not None]
