"""jaxsight's tools as functions, for scripts and notebooks; they run in the user's process.

They must never start a process for a device that JAX has here, change JAX's configuration, or need
more than the standard library, NumPy and JAX.
"""
