"""HLO text, read in one place: by compilers, tracers, locks, runs, notebooks and editors.

`text` finds computations and parses instructions, `shapes` parses their types, and `metadata` what
they say of where they come from: equations, and lines of files.

It must never import JAX, raise an error about a text, or take more than linear time.
"""
