"""What a document's example inputs depend on besides its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that hold installed libraries."""


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """Settings that a document's example inputs depend on: sizes, and the project's examples."""

    sizes: Mapping[str, int]
    examples: Mapping[str, str]
