"""Repros of functions with example inputs: extracted and reduced in processes of their own."""

from __future__ import annotations

from jaxsight.queries.engine import Engine
from jaxsight_repro.editor.repros import Repros


def extend(engine: Engine) -> Repros:
    """Return what a session has of this package (see `jaxsight.extensions`)."""
    return Repros(engine)
