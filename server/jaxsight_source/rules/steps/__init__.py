"""Rules for the steps that `folding` makes of equal runs of equations."""
