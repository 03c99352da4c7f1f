"""The process that runs user code: it executes, traces and describes functions.

It belongs to one project and one interpreter, the user's, and may die at any moment. It may import
the standard library, NumPy, JAX and a few modules of this package, and must never be needed for
what the server already knows, or let what one file did show in another.
"""
