"""Rewrite user code so that running it shows what it does: one rewriter, with switches.

`Rewriter` (`rewriter.py`) records the values of expressions, and the arguments of calls;
`SurvivalRewriter` (`survival.py`) also lets programs survive their failures in a dry run.
`branching.py` makes one statement per branch for that, `nodes.py` builds what is added, and
`compiling.py` compiles texts with what rewrites them.

Only trees are rewritten: positions stay the same, so JAX's source columns, tracebacks and `__doc__`
are those of the text.
This package uses only the standard library. It must never change what code computes, but where a
failure is survived.
"""
