"""How a program's figures grow with its sizes: the points of a sweep, and what follows from them.

`points.py` reads which sizes are swept and has the figures of one compiled program,
`memory_search.py` the largest size that fits in memory, `picture.py` draws curves as SVG, and
`table.py` writes rows and finds where XLA compiles the same program to other kernels.
It must never compile: the server's sweeps (`features/sweeps`) and `jaxsight.sweep` (`library`) do,
each in its way.
"""
