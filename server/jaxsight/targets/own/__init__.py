"""This machine's own accelerators: whether there is one, and whether a Python's JAX can use it.

Only names of files and small files of the system are read: no driver is loaded, no program is
started, and the device's memory and locks stay untouched.
"""
