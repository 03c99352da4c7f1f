"""Private API of JAX and jaxlib that rows need, one module per concern."""
