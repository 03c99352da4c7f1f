"""All private JAX API that interpreters of jaxprs need, one module per concern."""
