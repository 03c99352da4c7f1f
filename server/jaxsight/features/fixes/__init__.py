"""Quick fixes: candidate edits for findings, and the proof that an edit helps.

A rule's remedy reads text and syntax only and may guess freely: every candidate is applied in
memory, traced, run against the original and compiled before it is offered (`verifier`). A fix
without this proof is not offered, and text alone proves nothing.
"""
