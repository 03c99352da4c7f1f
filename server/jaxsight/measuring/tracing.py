"""Begin a profile of JAX's, for measurements and for programs of the user's."""

from __future__ import annotations

import functools


def start(folder: str) -> None:
    """Begin a profile without events of Python functions, which take longer than many of them do.

    Raises:
        RuntimeError: another profile is being made.
    """
    import jax  # not before the program of a user does

    begin = jax.profiler.start_trace
    if hasattr(jax.profiler, "ProfileOptions"):
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        begin = functools.partial(begin, profiler_options=options)
    begin(folder)
