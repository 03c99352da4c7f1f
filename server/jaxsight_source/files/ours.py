"""Which files are jaxsight's own."""

from __future__ import annotations

from pathlib import Path

OURS = str(Path(__file__).resolve().parents[2] / "jaxsight")
"""What the paths of our files begin with: `jaxsight`, and the packages beside it, `jaxsight_…`."""
