"""Runs of the user's program for `jaxsight record`."""
