"""Begin programs as others do: with a command line, or as a framework calls tests.

`command_lines.py` gives programs default arguments, `test_functions.py` reads tests, and
`entry_calls.py` calls the functions that a program begins with.
"""
