"""All private JAX API that the sourcerizer reads, one module per concern.

The text that it writes uses none.
"""
