"""Compilers of every target: their Python environments, and their processes, here or over ssh."""
