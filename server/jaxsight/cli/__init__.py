"""The command line: the same engine as in the editor, with printed answers.

It does not depend on LSP, and makes no decisions about code.
"""
