"""The result of compiling an answer for a target."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Compiled
from jaxsight.wire.messages.replies import Lowered
from jaxsight.workers.compilation.compilers import Trouble


@dataclass(frozen=True, slots=True)
class Result:
    """The result of compiling an answer for a target."""

    target: Target
    lowered: Lowered | None
    outcome: Compiled | Trouble
    is_unfolded: bool = False
    """Whether it was compiled without constant folding, unlike the user's own compile."""

    @property
    def is_complete(self) -> bool:
        """Whether another compile would add nothing."""
        return isinstance(self.outcome, Trouble) or self.outcome.is_complete

    @property
    def knows_temporaries(self) -> bool:
        """Whether another compile would say no more about temporaries."""
        return isinstance(self.outcome, Trouble) or self.outcome.knows_temporaries
