"""The program of a call of the original function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax

from jaxsight.interpreters.compat.staging import abstract, is_ref, stage
from jaxsight.sourcerizer.calls.signature import Call
from jaxsight.sourcerizer.proof.running import is_number_type
from jaxsight.sourcerizer.text.layout import flat


@dataclass(frozen=True, slots=True)
class TracedCall:
    """The program of a call, the tree of its results, and which of them are Python numbers.

    `structure` is a `PyTreeDef`.
    """

    jaxpr: Any
    structure: object
    numbers: tuple[bool, ...]


def trace(call: Call) -> TracedCall:
    values = [argument.value for argument in call.arguments]
    if any(map(is_ref, values)):
        jax.make_jaxpr(call.flat)(*values)  # raises if a ref is passed twice
    names = [flat(argument.expr) for argument in call.arguments]
    staged = stage(call.flat, list(map(abstract, values)), call.function, names)
    return TracedCall(staged.program, staged.tree, tuple(map(is_number_type, staged.types)))
