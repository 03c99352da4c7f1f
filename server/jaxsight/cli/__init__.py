"""The terminal: the same engine as the editor's, its answers printed.

Knows no LSP, and decides nothing about code.
"""
