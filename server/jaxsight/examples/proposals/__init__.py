"""Propose example inputs of a function that has none, from its text and from failed traces.

`inference.infer` interprets the function's body on abstract arrays whose ranks and sizes are
unknown (`interpreting`), and reads annotations (`annotated`), docstrings and comments (`prose`).
All of this are `clues`. The rows of `table` decide what kind of thing each parameter is (`kinds`),
and `writing` has an example of each kind. Arguments of constructors and fields go the same way:
expressions of objects are of the classes (`classes`) that `sources` finds in the module and in the
files that it imports.

`repairing` changes a proposal that could not be traced, by the error, and one whose trace has no
equation that depends on an input. Nothing here runs code.
"""
