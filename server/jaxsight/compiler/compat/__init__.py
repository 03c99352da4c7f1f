"""Private API of JAX and jaxlib for compiling without a device, one module per concern."""
