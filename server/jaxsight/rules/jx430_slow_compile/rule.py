"""JX430: XLA compiles a function for long, with what was measured to save most of the time."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_slow
from jaxsight.rules.rule import CompileTimes, Rule, Violation
from jaxsight.rules.wording import quoted
from jaxsight.text.units import seconds
from jaxsight.wire.messages.compiling import (
    BARRIER,
    ROLLED,
    SLOW,
    UNFOLDED,
    WITHOUT,
    Compiled,
    Saving,
)

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
_PER_KERNEL, _PER_INSTRUCTION = 0.04, 0.002
"""Seconds in which code is generated for a kernel, and for an instruction of a large one, on GPUs.

For an absent H100 (jaxlib 0.12.0.1): 1,000 kernels took 38 s, 600 took 35 s, 14,082 instructions
in 2 kernels 25 s, 25,485 in 3 kernels 49 s.
"""
_LARGE = 500
"""Instructions of a large kernel; `_PER_KERNEL` is that of smaller ones."""
_QUOTED = 28
"""Characters of an expression in a message, beside two times."""
_GPUS = ("cuda", "rocm")
_SMALLEST = (WITHOUT, BARRIER, UNFOLDED, ROLLED)
"""The kinds of changes, the smallest first."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Report how long a slow compile takes, at the place of the smallest change that helps."""
    compiled, slow, target = view.compiled, view.slow, view.target
    if target is None:
        return
    if slow is None:
        if compiled is not None and _may_take_long(compiled, target.platform in _GPUS):
            compiled.compile_seconds  # noqa: B018 - asks for the complete compile
        return
    if view.folding is not None and is_slow(view.folding):
        return  # JX102 reports it
    savings = {saving.kind: saving for saving in slow.savings}
    found = [savings[kind] for kind in _SMALLEST if kind in savings]
    if compiled is None:
        problem = f"does not compile for {target.short} in {seconds(slow.seconds)}"
    else:
        least = "" if compiled.is_complete else "≥ "
        problem = f"compiles for {target.short} in {least}{seconds(slow.seconds)}"
    if not found:
        yield Violation(
            problem,
            "",
            help="roll loops up with `jax.lax.scan`, or jit parts of the function separately",
        )
        return
    first, *others = found
    yield Violation(
        f"{problem}; {_change(view, first)} in {seconds(first.seconds)}",
        first.at,
        help=_HELP[(others or found)[0].kind],
        notes=(
            *(f"{_change(view, other)} in {seconds(other.seconds)}" for other in others),
            "the compile times were measured on this machine",
        ),
    )


def _may_take_long(compiled: Compiled, is_gpu: bool) -> bool:
    """Return whether the complete compile of a program that is scheduled may take long."""
    kernels = compiled.graph.kernels
    instructions = sum(kernel.emitted for kernel in kernels if kernel.emitted >= _LARGE)
    predicted = _PER_KERNEL * len(kernels) + _PER_INSTRUCTION * instructions
    return compiled.seconds >= _SUSPECT or (is_gpu and predicted >= SLOW / 2)


_HELP = {
    WITHOUT: "jit what comes before it separately, or write it in another way",
    BARRIER: "pass its operands through `jax.lax.optimization_barrier`, so that XLA does not fuse "
    "them with it",
    ROLLED: "use `jax.lax.fori_loop` or `jax.lax.scan` to compile the body once",
    UNFOLDED: "compute constants outside of the function, or turn folding off with "
    "`compiler_options`",
}


def _change(view: ProgramView, saving: Saving) -> str:
    match saving.kind:
        case "without":
            return f"without {_operation(view, saving)}"
        case "barrier":
            return f"with `optimization_barrier` before {_operation(view, saving)}"
        case "rolled":
            return f"with the loop of {saving.copies} copies rolled up"
        case _:
            return "without constant folding"


def _operation(view: ProgramView, saving: Saving) -> str:
    step = view.flow.steps.get(saving.at)
    primitive = f"`{step.primitive}`" if step is not None else "one operation"
    return quoted(view.quote(saving.at), primitive, _QUOTED)
