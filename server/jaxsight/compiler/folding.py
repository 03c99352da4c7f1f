"""Compiling without constant folding: what a program is compiled with that would fold for minutes,
and what folding is measured against.

The option is XLA's own (`xla_disable_hlo_passes`), documented by JAX since jax#39786. With it a
sort of a constant was seen to stay in optimized HLO on CPUs (JAX 0.8.0, 0.10.2, 0.12.0.1), and
ahead of time for an H100 (0.10.2, 0.12.0.1) and a TPU v5e (0.12.0.1).
"""

from __future__ import annotations

from dataclasses import replace

from jaxsight.compiler.protocol import Compile

_PASSES = "xla_disable_hlo_passes"
_FOLDING = "constant_folding"


def without(request: Compile) -> Compile:
    """Return a request to compile the same program without constant folding."""
    options = dict(request.options)
    off = options.get(_PASSES)
    options[_PASSES] = f"{off},{_FOLDING}" if off else _FOLDING
    return replace(request, options=tuple(options.items()))


def note(primitive: str, elements: int, seconds: float) -> str:
    """Return a note on what was compiled without folding.

    Args:
        primitive: what would be folded, of `elements` elements.
        seconds: how long that is estimated to take.
    """
    return (
        "compiled without constant folding, or XLA would compute "
        f"`{primitive}` of {elements:,} elements meanwhile (estimated: {seconds:.0f} s)"
    )
