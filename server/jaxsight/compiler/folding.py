"""Compile without constant folding, for programs that would fold for minutes and as a baseline.

The option is XLA's own (`xla_disable_hlo_passes`), documented by JAX since jax#39786.
With it, a sort of a constant stayed in the optimized HLO on CPUs (JAX 0.8.0, 0.10.2, 0.12.0.1), and
ahead of time for an H100 (0.10.2, 0.12.0.1) and a TPU v5e (0.12.0.1).
"""

from __future__ import annotations

from dataclasses import replace

from jaxsight.wire.messages.compiling import Compile

_PASSES = "xla_disable_hlo_passes"
_FOLDING = "constant_folding"


def without(request: Compile) -> Compile:
    """Return a request to compile the same program without constant folding."""
    options = dict(request.options)
    off = options.get(_PASSES)
    options[_PASSES] = f"{off},{_FOLDING}" if off else _FOLDING
    return replace(request, options=tuple(options.items()))


def note(primitive: str, elements: int, seconds: float) -> str:
    """Return a note on a program that was compiled without folding.

    Args:
        primitive: the operation that would be folded.
        elements: its number of elements.
        seconds: the estimated time to fold it.
    """
    return (
        "compiled without constant folding, which would compute "
        f"`{primitive}` of {elements:,} elements at compile time (estimated: {seconds:.0f} s)"
    )
