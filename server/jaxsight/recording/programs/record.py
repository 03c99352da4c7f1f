"""What is logged of a program, and read by the process that started the run."""

from __future__ import annotations

from dataclasses import dataclass

from jaxsight.profiles.places import CodePlace, library_of
from jaxsight.wire.messages.compiling import Memory


@dataclass(frozen=True, slots=True)
class RunProgram:
    """A program that a process compiled once."""

    name: str
    defined: CodePlace | None
    """Where its function is defined."""
    called: tuple[CodePlace, ...]
    """The innermost lines of the user's that called it."""
    arguments: tuple[tuple[str, str], ...]
    """Names and types; a weak type ends with `*`."""
    results: tuple[str, ...]
    static: tuple[tuple[str, str], ...]
    """Names and values of its static arguments."""
    shardings: tuple[str, ...]
    context: tuple[tuple[str, str], ...]
    """Settings of JAX that decide what a trace is."""
    function: int
    """The number of the function object in its process; 0 if unknown."""
    is_transformed: bool
    """Whether it is a part of a derivative or a batch that is evaluated outside of `jit`."""
    at: float
    """When it was compiled, in seconds since the epoch."""
    trace: float | None
    """Seconds; `None` if unknown. The first compile of a lowered function is the one that has it.
    """
    lower: float | None
    compile: float
    """Seconds in XLA, or to read it from the persistent cache."""
    is_cached: bool
    """Whether it is from the persistent compilation cache."""
    saved: float
    """Seconds that the cache saved, by JAX's account."""
    memory: Memory
    platform: str
    device: str
    devices: int
    hlo: str
    jaxpr: str
    equations: int
    error: str
    """Why XLA did not compile it; empty if it did."""

    @property
    def seconds(self) -> float:
        """What it took to trace, lower and compile it, as far as known."""
        return (self.trace or 0) + (self.lower or 0) + self.compile

    @property
    def library(self) -> str:
        """The library that defines its function; empty if the user does."""
        return library_of(self.defined.file) if self.defined is not None else "jax"
