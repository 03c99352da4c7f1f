"""The text of a module: its statements, functions and names. Nothing here runs code."""
