"""Code that runs in the user's Python environment.

It may import only the standard library, numpy and JAX, and a few modules of this package.
"""
