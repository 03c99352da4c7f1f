"""Fuzzers: what comes from outside, made wrong by a seed, and what must hold whatever came.

Each module is a subject with `run(count, seed)`, which returns a `Report`. The suite runs a few of
each; `python -m tools.fuzz SUBJECT --count N --seed S` runs more. A case is drawn from
`SEED:NUMBER` alone, so a failure that is printed can be had again.
"""
