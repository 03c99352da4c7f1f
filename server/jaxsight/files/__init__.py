"""Files: reading those of unknown origin, and storing jaxsight's own.

This package must never read a file of unknown origin without a limit, or leave one of our own half
written where another process reads it.
"""
