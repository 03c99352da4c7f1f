"""Run a user's program, and have JAX profile some steps of it (`observing/profiled.py`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxsight.files import reading
from jaxsight.recording import (
    PROFILE,
    PROFILE_FUNCTION,
    PROFILE_OUTCOME,
    PROFILE_STEPS,
    ProfileOutcome,
)
from jaxsight.recording.running import observed_environment, run


@dataclass(frozen=True, slots=True)
class ProfiledRun:
    """What came of a program that was to be profiled."""

    status: int
    function: str = ""
    """The function whose calls were steps; empty if there was no profile."""
    steps: int = 0
    ended_early: bool = False
    reason: str = ""
    """Why there is no profile."""


def profile(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    steps: int,
    function: str = "",
) -> ProfiledRun:
    """Run a command, and profile some of its steps.

    Args:
        command: the program with its arguments.
        folder: an empty folder that the profile is written to.
        environment: the program's variables.
        steps: the number of steps.
        function: the name of the function whose calls are steps; by default the first that JAX
            compiles and that is called four times.

    Raises:
        FileNotFoundError, PermissionError: there is no such program.
    """
    variables = observed_environment(
        environment,
        {PROFILE: str(folder), PROFILE_STEPS: str(steps), PROFILE_FUNCTION: function},
    )
    status = run(command, variables, lambda: None)
    try:
        found = json.loads(reading.text(folder / PROFILE_OUTCOME, reading.SMALL))
    except (reading.UnreadableError, ValueError):
        found = {}
    match found.get("outcome"):
        case ProfileOutcome.DONE | ProfileOutcome.ENDED_EARLY as outcome:
            steps_done = found.get("steps")
            return ProfiledRun(
                status,
                str(found.get("function", "")),
                steps_done if isinstance(steps_done, int) else 0,
                outcome == ProfileOutcome.ENDED_EARLY,
            )
        case ProfileOutcome.FAILED:
            return ProfiledRun(status, reason=str(found.get("message", "")))
        case ProfileOutcome.BEGUN:
            reason = "the program ended without running its exit handlers"
            return ProfiledRun(status, reason=reason)
    called = f"`{function}`" if function else "no function compiled by JAX"
    was = "was not called" if function else "was called"
    reason = f"{called} {was} four times outside of others (Python 3.12 or later is needed)"
    return ProfiledRun(status, reason=reason)


def new_folder(root: Path) -> Path:
    """Create and return the folder for the profiles of a project."""
    folder = root / ".jaxsight" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROFILE_OUTCOME).unlink(missing_ok=True)
    return Path(os.path.realpath(folder))
