"""Programs whose dry run may show what functions of a file are called with. Nothing is run here.

`entries` finds where programs begin in a file, `ranking` puts them in order: it reads which modules
a text imports, and finds Python in notebooks, documents and doctests.
"""
