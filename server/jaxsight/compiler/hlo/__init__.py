"""Optimized HLO text as a kernel graph.

Standard library alone; linear in the text; what it does not know it notes, and goes on.

graph = read(text)

`text` makes instructions of lines, `shapes` sizes of types, `walk` goes through the computations
that run and finds kernels, loops and branches, `kinds` says what each kernel is, `barriers` why it
ends where it does, `flow` what passes between them, `work` what each one does (`flops` its
arithmetic, `traffic` what it touches in memory).
"""

from jaxsight.compiler.hlo.read import read

__all__ = ["read"]
