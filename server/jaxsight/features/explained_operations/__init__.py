"""What each primitive of JAX and each operation of StableHLO and HLO does, in one line with a link.

`primitives.txt`, `stablehlo.txt` and `hlo.txt` are the tables, in our own words. A section begins
with its link, in which `{}` stands for the name; a line is `name: explanation`, or
`name=words: explanation` where the link has other words than the name. HLO's lines without an
explanation have that of StableHLO's operation of the same name.
`table.py` reads them, and explains what is at a place in a printed program.
"""
