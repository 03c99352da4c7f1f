"""Templates of operations that people use rarely, so that each occurs in enough programs."""
