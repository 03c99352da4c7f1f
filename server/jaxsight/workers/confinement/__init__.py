"""Confines processes that run a workspace's code to look at it: `launch.py` starts them.

They write nothing outside of a temporary folder of their own and of `kept`, reach no network, and
end, stop or reprioritize no process outside. On Linux `landlock.py` guards files, `seccomp.py` what
Landlock lets through, and `launch.py` gives them shared memory of their own; on macOS there
is a profile of `sandbox-exec`; elsewhere there are the tracer's audit hooks alone. What they start
inherits it.

`start.py` belongs to the server; the other modules run in the launcher, which is the server's own
Python before it becomes the user's: standard library only.
"""
