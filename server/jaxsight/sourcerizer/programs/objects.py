"""Which objects are programs, and the call of each."""

from __future__ import annotations

from typing import TypeAlias

import jax
from jax.extend.core import ClosedJaxpr

from jaxsight.interpreters.compat.staging import is_jaxpr
from jaxsight.sourcerizer.programs.given import GivenProgram, of_jaxpr
from jaxsight.sourcerizer.programs.stages import of_traced

ProgramObject: TypeAlias = ClosedJaxpr | jax.stages.Traced
"""A program of JAX that has the types of its arguments."""


def given_program(value: object) -> GivenProgram | None:
    """Return a program as one to write, or None for anything else.

    Raises:
        TypeError: if it is incomplete, such as a jaxpr without its constants.
    """
    if is_jaxpr(value):
        return of_jaxpr(value)
    if isinstance(value, jax.stages.Traced):
        return of_traced(value)
    return None
