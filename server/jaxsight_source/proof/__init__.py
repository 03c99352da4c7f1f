"""Proof that expressions and texts are the same program."""
