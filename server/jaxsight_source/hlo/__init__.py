"""Reads programs of HLO, as XLA dumps them, before and after optimizations.

XLA itself reads the text or proto and converts it to StableHLO (`formats`, `compat.lowered`).
`convolutions` and `flattening` replace what optimized HLO has and StableHLO has not; `reading` puts
them together. Calls of compute libraries are read like operations of StableHLO.
"""
