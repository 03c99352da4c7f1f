"""Rules for equations whose inner programs are functions of the user's or of JAX."""
