"""Measure programs on a device of this machine: their arguments, runs, kernels, and conditions.

It runs in the user's Python, in tracers and in `jaxsight.measure`, and imports only the standard
library, numpy and JAX's public API. It must never report a time without what disturbed it, or two
measurements at once.

* `arguments.py`: values for arguments that are given by their types;
* `timing.py`: timed runs until their median is known, and the statistics of them;
* `profile.py`: what the device did meanwhile, from JAX's profiler;
* `machine.py`: one measurement at a time, and what else the machine did;
* `programs.py`: all of these for compiled programs.
"""
