"""Propose example inputs of a function that has none, from its text and from failed traces.

`inference.infer` interprets the function's body on abstract arrays whose ranks and sizes are
unknown, and collects what it demands of each parameter. `construction` writes expressions of
objects, with the definitions that `sources` finds in the module and in the files that it imports.
`repair.repaired` changes a proposal that could not be traced, by the error, and `repair.enriched`
one whose trace has no equation that depends on an input. Nothing here runs code.
"""
