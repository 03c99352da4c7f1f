"""A compiled program on a target, and all that is said of it.

`Figures` is made once from the compiler's answer. Whatever shows a program reads it: `headline`,
`rows`, `notes` and `record` say the same of it in a hover, a terminal, a panel and a notebook.
This package must never know an editor, JAX, or a user's text but through `Places`.
"""
