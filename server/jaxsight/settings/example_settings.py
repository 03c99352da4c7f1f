"""What a document's example inputs depend on besides its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jaxsight.examples.sets import OutsideSet
from jaxsight.wire.meshes import Mesh

LIBRARIES = frozenset({"site-packages", "dist-packages"})
"""Folders that hold installed libraries."""


@dataclass(frozen=True, slots=True)
class ExampleSettings:
    """What a document's example inputs depend on besides its text.

    These are settings (sizes, the project's examples, a mesh) and observed calls.
    """

    sizes: Mapping[str, int]
    examples: Mapping[str, str]
    mesh: Mesh | None = None
    observed: Mapping[tuple[str, str], tuple[OutsideSet, ...]] = field(default_factory=dict)
    """Observed calls by the path of a file and the id of a function in it (`Module.ids`)."""
    only_written: bool = False
    """Whether only what the user wrote as example inputs counts: no calls, and no proposals."""
