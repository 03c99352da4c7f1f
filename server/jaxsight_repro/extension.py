"""What the core knows of this package before it is used, see `jaxsight.extensions`."""

from __future__ import annotations

from jaxsight.extensions import Extension

EXTENSION = Extension(
    help="Extract a bug in a JAX program as one standalone file.",
    group="Bugs",
    documents={"repro": ".repro.py", "reduced": ".reduced.py"},
)
