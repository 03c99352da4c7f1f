"""Private API of JAX that the tracer uses, one module per concern.

Each module states the versions of JAX that it applies to.
"""
