"""Profiles of real runs: which lines of the user's files a device spent its time on.

`jax.profiler` and XProf write a file `HOST.xplane.pb` for each host of a run. Nothing is run to
read them, JAX is not needed, and the memory that it takes depends on the number of different
kernels, not on the size of the files, which may be gigabytes.

`sources.py` finds the files of a run, and the user's. `space.py` reads one in parts: the planes (a
host, a device), their lines (a thread, a stream), and their events, one at a time. `programs.py`
reads the optimized HLO that is stored beside them, for the source line of each instruction
(`places.py`). `host_lines.py` and `device_lines.py` know how backends write what was executed: they
turn the lines of a plane into kernels in the order of time, steps and waits. `timeline.py` adds
them up for a device, and `reading.py` does all of it for the files of a run; `profile.py` is the
result.

A profile is a file of unknown origin: its numbers are figures to show, its texts are made inert by
whoever shows them, and the files that it names are read only to show their lines. This package must
never hold a file whole.
"""
