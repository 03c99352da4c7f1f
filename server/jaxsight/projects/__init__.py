"""Projects: their settings, their Python environments, and their tracers.

A project is a root folder with one interpreter. This package must never start its Python
before the folder is trusted.
"""
