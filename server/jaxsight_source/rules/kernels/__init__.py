"""Kernels of Pallas: the call with its grid and blocks, and what only kernels contain."""
