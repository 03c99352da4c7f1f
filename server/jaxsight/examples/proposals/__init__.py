"""Propose example inputs of a function that has none, from its text and from failed traces.

`inference.propose` interprets the function's body on abstract arrays whose ranks and sizes are
unknown, and collects what it demands of each parameter. `repair.repaired` changes a proposal that
could not be traced, by the error. Nothing here runs code.
"""
