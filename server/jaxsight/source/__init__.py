"""The text of a module: its statements, functions and names, and what they depend on.

Everything here follows from the text alone: it must never run code
or import a module of the user's.
"""
