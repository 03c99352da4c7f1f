"""Templates of Pallas kernels, and of programs over several devices."""
