"""All of JAX's private API that the tracer touches, one module per concern.

Each says for which versions it holds.
"""
