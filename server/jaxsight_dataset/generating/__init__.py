"""Writes programs: pure functions of a specification and a number, without JAX.

A program's text, arguments and properties depend on the specification, its seed and the program's
number alone, so any process can write any of them.
"""

from __future__ import annotations

from jaxsight_dataset.generating.programs import generate, templates

__all__ = ["generate", "templates"]
