"""Inverses of primitives and of groups of equations; `transform` imports each module."""
