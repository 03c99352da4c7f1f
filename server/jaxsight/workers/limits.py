"""Limits of a tracer's time and resources, from the settings `timeouts.*` and `memoryLimit`."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.text.units import GIB, MIB


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds for each stage of a request, and sizes in bytes.

    The time of a stage starts with its `Stage` message.
    """

    start: float = 60.0
    """From the spawn of a tracer to its handshake: Python starts and imports JAX, which takes 0.4
    s, on a loaded machine 2.1 s (`docs/performance.md`), from a cold network disk far more."""
    execute: float = 30.0  # this and the next four are settings of a project
    inputs: float = 10.0
    trace: float = 30.0
    compile: float = 120.0
    """Those of a process that measures; compilers have a deadline of their own."""
    measure: float = 60.0
    wait: float = 600.0
    """How long a measurement waits for others on this machine, a choice: longer than any takes."""
    cancel: float = 1.0
    """How long a cancelled request may continue while another waits, a choice; then its tracer is
    replaced, which costs the next hover more than most requests take."""
    memory: int = 4 * GIB
    """Resident memory of a tracer together with all processes that it started."""
    processes: int = 512
    """How many processes user code may have at once, a choice: a data loader with a worker for each
    core of a large machine has fewer, a fork bomb soon more."""
    output: int = 1 * MIB
    """Bytes that user code may print during one request; the rest is dropped. A choice: thousands
    of lines, more than anyone reads in the log."""

    def of_stage(self, stage: str) -> float:
        """Return the seconds for a stage, by its name in the protocol.

        Stages without a limit of their own have the limit of tracing.
        """
        name = "measure" if stage == "profile" else stage
        own = ("execute", "inputs", "compile", "measure", "wait")
        seconds: float = getattr(self, name if name in own else "trace")
        return seconds
