"""Another code path of XLA's CPU backend, to run programs on that were compiled as usual.

Applies to JAX 0.8 to 0.12. XLA ends a process that has a flag in `XLA_FLAGS` which it does not
know, and names of flags are not part of JAX's API: `xla_cpu_use_fusion_emitters`, which chooses
between two generators of LLVM IR, is in jaxlib 0.8.0 and 0.10.2, not in 0.12.0.1.
"""

from __future__ import annotations

from importlib import metadata

_OF_LIBRARY = '"kind":"__ynn_fusion"'
"""A fusion that the pass `dot-library-rewriter` made
(`xla/backends/cpu/transforms/library_rewriter.h`)."""

_UNOPTIMIZED = "--xla_backend_optimization_level=0"
_OTHER_GENERATOR = "--xla_cpu_use_fusion_emitters=false"


def flags() -> str:
    """Return the value of `XLA_FLAGS` for the jaxlib that is installed."""
    return f"{_UNOPTIMIZED} {_OTHER_GENERATOR}" if _has_both_generators() else _UNOPTIMIZED


def differ(hlo: str) -> bool:
    """Return whether the other code path compiles a program of this optimized HLO otherwise."""
    return _has_both_generators() or _OF_LIBRARY in hlo


def _has_both_generators() -> bool:
    major, minor = metadata.version("jaxlib").split(".")[:2]
    return (int(major), int(minor)) <= (0, 10)
