"""All private JAX API that jaxpr interpreters need, one module per concern."""
