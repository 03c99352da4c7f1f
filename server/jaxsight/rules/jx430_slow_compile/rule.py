"""JX430: XLA compiles a function for long."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_slow
from jaxsight.rules.rule import CompileTimes, Rule, Violation
from jaxsight.text.units import seconds
from jaxsight.wire.messages.compiling import SLOW, Compiled

RULE = Rule(
    __name__,
    "Compiling takes long.",
    severity="warning",
    always=False,
    measures=CompileTimes.SLOWNESS,
)

_SUSPECT = 2.0
"""Seconds until a program is scheduled from which the complete compile may take `SLOW`, a choice:
less compiles programs completely for nothing, more misses slow ones on CPUs."""
_PER_KERNEL = 0.04
"""Seconds in which code is generated for a kernel on GPUs.

For an absent H100 (jaxlib 0.12.0.1): 1,000 kernels took 38 s, 600 took 35 s.
"""
_GPUS = ("cuda", "rocm")


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Report how long a slow compile takes."""
    compiled, slow, target = view.compiled, view.slow_seconds, view.target
    if target is None:
        return
    if slow is None:
        if compiled is not None and _may_take_long(compiled, target.platform in _GPUS):
            compiled.compile_seconds  # noqa: B018 - asks for the complete compile
        return
    if view.folding is not None and is_slow(view.folding):
        return  # JX102 reports it
    if compiled is None:
        problem = f"does not compile for {target.short} in {seconds(slow)}"
    else:
        least = "" if compiled.is_complete else "≥ "
        problem = f"compiles for {target.short} in {least}{seconds(slow)}"
    yield Violation(
        problem,
        "",
        help="roll loops up with `jax.lax.scan`, or jit parts of the function separately",
    )


def _may_take_long(compiled: Compiled, is_gpu: bool) -> bool:
    """Return whether the complete compile of a program that is scheduled may take long."""
    predicted = _PER_KERNEL * len(compiled.graph.kernels)
    return compiled.seconds >= _SUSPECT or (is_gpu and predicted >= SLOW / 2)
