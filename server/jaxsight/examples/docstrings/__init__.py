"""Example inputs in docstrings: sections, their lines, and doctests."""
