"""What a document's answers depend on besides its text and its project's code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that hold installed libraries."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a document's examples depend on besides its text: sizes of the settings, examples of the
    project.
    """

    sizes: Mapping[str, int]
    examples: Mapping[str, str]
