"""How many dimensions get names, and whether one of them is wrong.

    python -m tools.size_names                      # functions of JAX's public API
    python -m tools.size_names --functions FILE     # functions of installed libraries

`FILE` is what `python -m tools.precision look` writes. Each function is traced as in an editor, and
then with sizes that the search for names did not use: every name must give the size observed there.
"""
