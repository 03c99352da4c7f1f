"""The core: documents, slices, schedule and features, as plain data.

Knows no LSP and never imports JAX.
"""
