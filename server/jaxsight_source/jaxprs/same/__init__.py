"""Comparison of two jaxprs: whether they are the same program, and where they first differ.

The same program may have other names of variables and of inner jits, other dead code, and scalar
literals of another Python or NumPy type, or as constants. A sharding may be absent or over no axes,
and loops, linear solves and functions with custom rules may list the values that they capture in
another order. Everything else must agree: primitives in order, their parameters, operands, abstract
values with weak types, effects, the rules of custom derivatives, and the bits of constants.

Only the `==` of Python's, NumPy's and JAX's own objects is trusted; other objects are compared by
their contents, or count as different.

`comparison` compares programs, `values` parameters, and `derivatives` the rules of custom
derivatives. `tokens` says which values
are equal, `liveness` which equations matter, and `inlining` inlines calls.
"""
