"""What a document's example inputs depend on besides its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxsight.wire.meshes import Mesh

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that hold installed libraries."""


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """Settings that a document's example inputs depend on.

    These are sizes, the project's examples, and a mesh.
    """

    sizes: Mapping[str, int]
    examples: Mapping[str, str]
    mesh: Mesh | None = None
