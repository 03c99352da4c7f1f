"""Reads a StableHLO module as a jaxpr, which the sourcerizer writes.

`read` parses the module (`compat.mlir`), and evaluates its operations with functions of `jax.lax`
while JAX traces them (`evaluation`): so each operation of the module becomes the equation that JAX
lowers to it. `operations` has one function per operation. Functions of the module become jitted
functions, regions become the functions of `while_loop`, `cond`, `reduce` and so on.

`canonical` prints a module so that two modules with the same computation have the same text.
`prove` lowers a written function again, compares, and runs both.
"""
