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
