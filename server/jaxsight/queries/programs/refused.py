"""A program that was not compiled for a target."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import SlowCompile
from jaxsight.wire.messages.replies import Lowered
from jaxsight.workers.compilation.compilers import Trouble


@dataclass(frozen=True, slots=True)
class Refused:
    """A program that was not compiled for a target, and why."""

    target: Target
    trouble: Trouble
    lowered: Lowered | None = None
    """The program, if the function could be lowered."""

    @property
    def slow(self) -> SlowCompile | None:
        """How long it was compiled, if it was not in time."""
        return SlowCompile(self.trouble.seconds) if self.trouble.kind == "time" else None

    @property
    def is_complete(self) -> bool:
        """Whether another compile would add nothing."""
        return True

    @property
    def knows_temporaries(self) -> bool:
        """Whether another compile would say no more about temporaries."""
        return True
