"""Sweeps: a function traced and compiled with one size after another, for a target.

`resized.py` changes the sizes of example inputs, `sweeping.py` compiles the points and looks for
the largest size that fits in memory. `jaxsight.sweeps` has what follows from the points.
"""
