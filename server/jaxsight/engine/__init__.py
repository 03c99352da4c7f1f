"""Documents, slices, schedule and features, as plain data.

The engine does not depend on LSP and never imports JAX.
"""
