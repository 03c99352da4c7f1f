"""Writes a tree of calls as a program that makes the same calls.

`equations` makes equations of what a user's function did, `structures` writes pytrees and stand-ins
for the user's classes, `steps` the step that raised an error, `functions` the user's functions and
the calls of JAX, and `write` the module.
"""
