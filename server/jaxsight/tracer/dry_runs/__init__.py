"""Run programs without values, to see what they call a file's functions with.

A dry run executes a program under one outer trace, so that arrays have shapes but no values.
Nothing that fails ends it: `rewriting/survival.py` gives each statement of the program's functions
a handler, and what a failed statement would have bound is unknown, as is data that cannot be loaded
(`values/`). Loops run a few times; effects outside of the process are refused, as for all inputs
that nobody wrote.

`runtime.py` is what rewritten code calls. `programs.py` begins programs with what they are given:
`command_lines.py` has default arguments, `entry_calls.py` calls the functions that a program begins
with, as a framework calls tests. `branches.py` runs all branches where a condition is unknown, and
`captured.py` keeps what functions were called with, without any tracer.
Where unknown sizes do not fit what a program does with them, it runs again with others.

Functions that JAX traces, and modules' methods, are not rewritten: they fail as they would.
"""
