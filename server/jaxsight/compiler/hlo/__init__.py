"""Optimized HLO text as a kernel graph.

It uses only the standard library and takes linear time.
Unknown text is noted and skipped.

graph = read(text)

`text` parses instructions, `shapes` parses types, `walk` follows the computations that run and
finds kernels, loops and branches, `kinds` classifies kernels, `barriers` finds the reasons of their
fusion boundaries, `flow` the values between them, `work` estimates their work (`flops` the
arithmetic, `traffic` the memory accesses).
"""

from jaxsight.compiler.hlo.read import read

__all__ = ["read"]
