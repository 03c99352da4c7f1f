"""Run the user's program until a file's functions were called, and end it then.

`wanted.py` says which functions that are, `programs.py` which program calls them, `until_called.py`
runs it. The command line and editors share all of it.
"""
