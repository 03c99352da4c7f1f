"""Lowered programs, read from private JAX API: MLIR, HLO modules, stages."""
