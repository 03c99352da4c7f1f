"""The command line: the same engine as in the editor, with printed answers.

A command reads its options, asks the engine, and prints. It must never know LSP, and never decide
about code: what it prints, an editor can show.
"""
