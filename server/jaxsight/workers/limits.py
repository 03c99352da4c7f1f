"""How long a tracer may take, and how much it may use.

The settings `timeouts.*` and `memoryLimit` end here.
"""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for each stage of a request, and sizes in bytes.

    A stage's clock starts with its `Stage` message.
    """

    start: float = 60.0
    """From the spawn of a tracer to its greeting: Python and JAX are imported meanwhile."""
    execute: float = 30.0
    inputs: float = 10.0
    trace: float = 30.0
    cancel: float = 1.0
    """What a cancelled request may still take while another one waits; then its tracer is replaced.
    """
    memory: int = 4 * GIB
    """Resident memory of a tracer and of all processes that it started, together."""
    processes: int = 512
    """How many processes user code may have at once."""
    output: int = 1 * MIB
    """What user code may print during one request; the rest is dropped."""

    def of_stage(self, stage: str) -> float:
        """Seconds for a stage by its name on the wire; stages without a limit of their own have
        that of tracing.
        """
        match stage:
            case "execute":
                return self.execute
            case "inputs":
                return self.inputs
            case _:
                return self.trace
