"""Programs whose dry run may show what functions of a file are called with. Nothing is run here.

`imports` reads which modules a text imports, `texts` finds Python in notebooks, documents and
doctests, `entries` finds where programs begin in a file, `ranking` puts them in order.
"""
