"""Whether a function is the same program in each process of a job for several devices.

The processes of such a job wait for each other, while compiling and in collectives, so each must
run the same programs in the same order. `explorer.py` traces a function again as each process of a
small job, in tracers of their own with other hash seeds. Where their StableHLO differs, further
traces tell whether the number of the process, the hash seed or something else decides, and
`comparison.py` finds the first equation that differs.
"""
