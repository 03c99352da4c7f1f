"""Reduces the statements of a file, where tracing itself fails or a script decides.

Values that a failure does not depend on become zeros of the types that they had.
"""
