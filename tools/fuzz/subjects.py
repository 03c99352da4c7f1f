"""What is fuzzed, by name."""

from __future__ import annotations

from collections.abc import Callable

from tools.fuzz import (
    cache_files,
    docstrings,
    frames,
    hlo,
    kills,
    messages,
    notebooks,
    positions,
    toml_settings,
    wire_bytes,
)
from tools.fuzz.report import Report

SUBJECTS: dict[str, Callable[[int, int], Report]] = {
    "bytes": wire_bytes.run,
    "messages": messages.run,
    "commands": messages.run_commands,
    "positions": positions.run,
    "notebooks": notebooks.run,
    "docstrings": docstrings.run,
    "settings": toml_settings.run,
    "hlo": hlo.run,
    "cache": cache_files.run,
    "frames": frames.run,
    "kills": kills.run,
}
