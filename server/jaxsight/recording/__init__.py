"""Example inputs from a run of the user's program: what its functions were called with.

`running.py` starts the program with `observing/site/sitecustomize.py`, which every Python that it
starts runs first. There, `observing/observer.py` looks at calls of the project's functions
(`start.py` has Python report them), `expressions.py` writes them in the notation of example inputs,
and `observing/log.py` appends them to a file at once, so a crash loses nothing. The starting
process merges these files into `.jaxsight/recorded.json` (`recorded_file.py`), which the server
reads.

With `profile --run`, `running.py` starts the program, too, and `observing/profiled.py` has JAX
profile a few steps in it.

What observes must never change the program: it keeps no argument alive, and a fault of its own ends
the recording, not the run.

For `report --run`, `programs/` collects what the program compiles instead.

No values of arrays are stored, and of other values only those that select what a program is.
What runs in the user's Python uses the standard library, numpy and jax.
"""

from enum import StrEnum

FOLDER = "JAXSIGHT_RECORDING"
"""The variable with the folder that processes log into."""
ROOT = "JAXSIGHT_RECORDING_ROOT"
"""The variable with the root of the project."""
TESTS = "JAXSIGHT_RECORDING_TESTS"
"""The variable that is set if functions of tests are recorded, too."""
PROFILE = "JAXSIGHT_PROFILE"
"""The variable with the folder that a profile is written to; nothing else is recorded then."""
PROFILE_STEPS = "JAXSIGHT_PROFILE_STEPS"
"""The variable with the number of steps to profile."""
PROFILE_FUNCTION = "JAXSIGHT_PROFILE_FUNCTION"
"""The variable with the name of the function whose calls are steps; without it, the first that JAX
compiles and that is called a few times."""
PROFILE_OUTCOME = "profile.json"
"""The file that says what came of a profile; the process that creates it is profiled."""
MISSING = "JAXSIGHT_RECORDING_MISSING"
"""The variable with modules that are not installed, and that do nothing in this run; without it,
their imports fail as always."""

RUN = "JAXSIGHT_RUN"
"""The variable with the folder that processes log into what they compile; nothing else is recorded
then."""


class ProfileOutcome(StrEnum):
    """What came of a profile, as the program's process reports it."""

    BEGUN = "begun"
    DONE = "done"
    ENDED_EARLY = "ended early"
    FAILED = "failed"
