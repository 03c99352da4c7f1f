"""Finds operations that JAX lowers one primitive to, so that they become this primitive again.

A candidate is a function of JAX that may have been lowered to an operation (its anchor) and those
around it. It is lowered, and accepted only if the operations are the same, one by one (`matching`).
So candidates may be guesses. `candidates` lists them.
"""
