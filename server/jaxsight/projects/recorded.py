"""What functions of a project were called with in recorded runs, as example inputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from jaxsight.recording import recorded_file
from jaxsight.recording.recorded_file import RecordedFileError
from jaxsight.trust.words import shown_path

if TYPE_CHECKING:
    from jaxsight.examples.sets import OutsideSet

LABEL = "as recorded"

Observed = Mapping[tuple[str, str], tuple["OutsideSet", ...]]


def recorded_calls(root: str) -> tuple[Observed, str]:
    """Return recorded calls by file and function, and why there are none if the file is broken."""
    try:
        functions = recorded_file.read(root)
    except RecordedFileError as error:
        path = shown_path(str(recorded_file.path_in(root)))
        return {}, f"{path} is ignored: {error}; delete it, or record again"
    if not functions:
        return {}, ""
    from jaxsight.examples.sets import OutsideSet  # 30 ms, which most projects need not wait for

    return {
        (str(Path(root, file)), name): tuple(
            OutsideSet("recorded", LABEL, call.inputs, may_fail=not call.is_traced)
            for call in calls
        )
        for (file, name), calls in functions.items()
    }, ""
