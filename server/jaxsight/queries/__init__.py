"""Queries about functions: they are asked once, cached by key, and located in the current text.

A query must never have a side effect that another one sees, or write to a text. All caches of a
session are in `memory.py`, and nobody else may enumerate them.
"""
