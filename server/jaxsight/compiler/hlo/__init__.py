"""Optimized HLO text as a kernel graph.

It uses only the standard library and takes linear time.
Unknown text is noted and skipped.

graph = read(text)

`jaxsight.hlo` parses instructions and their types, `walk` follows the computations that run and
finds kernels, loops and branches, `flow` the values between them.
Each kernel is described from the instructions inside (`fused`), which are dropped afterwards: most
of a large text is in fusions.
`kinds` classifies kernels, `barriers` finds the reasons of their fusion boundaries, `feeds` what
those without an equation are for, `work` estimates their work (`flops` the arithmetic, `traffic`
the memory accesses, `sorts` the launches of a sort), `distributed` their communication.
"""

from jaxsight.compiler.hlo.read import read

__all__ = ["read"]
