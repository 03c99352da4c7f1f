"""Printed programs (jaxprs, StableHLO, HLO) as structure: blocks, statements and names.

`read.py` reads a text in one linear pass; the other modules answer an editor's questions about it.
Texts may be of any origin: an ill-formed one loses structure, never more.
Offsets count code points from the beginning of the text. Nothing here knows LSP or JAX.
"""
