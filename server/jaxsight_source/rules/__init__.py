"""How each primitive is spelled, with a module per group.

`templates` is a table of the calls that need no code. `lax` and `pretty` have the other rules of
the two styles, `functions` those for equations with inner programs, and `steps` those for what
`folding` finds.
"""
