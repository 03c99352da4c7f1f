"""Private API of JAX and jaxlib that compiling without a device needs, one module per concern."""
