"""Finds equal runs of equations: calls of the same function, and iterations of an unrolled loop.

Each run is replaced with one `FoldedStep`, which looks like an equation, so runs of steps are found
in the same way. Nothing is written here and no equation moves, so the program stays the same
whatever is found; `rules.steps` writes the steps.

* A `Family` is a helper function: runs of consecutive equations that one function of the user's
  created, equal except for their operands. It takes the outside values that they read and returns
  the values that are read outside.
* If the runs of one family read values of another one's runs, as the backward pass of a layer reads
  its forward pass, the former is written inside the latter, which returns it: it sees everything
  there, like the function that `jax.vjp` returns.
* A `FoldedLoop` is a tandem repeat: consecutive runs of steps, each of which may read results of
  the previous one.
"""
