"""Rules of both styles, mostly with the functions of `jax.lax`."""
