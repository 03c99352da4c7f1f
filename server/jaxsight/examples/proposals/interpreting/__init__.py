"""What a function's body demands of its parameters, found without running it.

`interpretation` walks through the body on the values of `evidence`, whose shapes have unknown ranks
and sizes. `uses` has what operators, subscripts and attributes demand, `conditions`
what must hold, and `operations` the functions of `jax.numpy` and others.
"""
