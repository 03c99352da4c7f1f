"""State that a function updates in place: watched objects, and libraries with state protocols.

This package does not import the user's libraries: it gets them from `sys.modules` if user code has
imported them.
"""
