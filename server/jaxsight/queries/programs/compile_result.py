"""The result of compiling an answer for a target."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jaxsight.targets.target import Target, recognized
from jaxsight.wire.messages.compiling import SLOW, Compiled, SlowCompile
from jaxsight.wire.messages.replies import Lowered
from jaxsight.workers.compilation.compilers import Trouble


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of compiling an answer for a target."""

    target: Target
    lowered: Lowered | None
    outcome: Compiled | Trouble
    is_unfolded: bool = False
    """Whether it was compiled without constant folding, unlike the user's own compile."""

    @staticmethod
    def made(
        target: Target, lowered: Lowered, outcome: Compiled | Trouble, *, is_unfolded: bool = False
    ) -> CompileResult:
        """Return a result whose target has the figures of the device that it was compiled on."""
        kind = outcome.device_kind if isinstance(outcome, Compiled) else ""
        return CompileResult(recognized(target, kind), lowered, outcome, is_unfolded)

    def of(self, target: Target) -> CompileResult:
        """Return the result for the same target, chosen by the user or not."""
        why = target.why_default
        if self.target.why_default == why:
            return self
        return replace(self, target=replace(self.target, why_default=why))

    @property
    def slow(self) -> SlowCompile | None:
        """How long it took, if it took long or was not in time."""
        match self.outcome:
            case Compiled(seconds=seconds) if seconds >= SLOW:
                return None if self.is_unfolded else SlowCompile(seconds)
            case Trouble(kind="time", seconds=seconds):
                return SlowCompile(seconds)
        return None

    @property
    def is_complete(self) -> bool:
        """Whether another compile would add nothing."""
        return isinstance(self.outcome, Trouble) or self.outcome.is_complete

    @property
    def knows_temporaries(self) -> bool:
        """Whether another compile would say no more about temporaries."""
        return isinstance(self.outcome, Trouble) or self.outcome.knows_temporaries
