"""Tracks the tree of calls of JAX's functions and of the user's functions while a program runs.

`records` has the tree as plain data. `packing` takes arguments apart into numbered values,
`wrapping` makes the user's functions observable, `apis` lists the functions of JAX that take
functions, `failing` finds the step that raised an error (by `public_functions`, which knows their
code, or what it reads in the user's line), `building` has a tree while it is recorded,
and `tracker` puts them together.
"""
