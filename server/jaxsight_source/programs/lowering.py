"""Proof that a text that was written from StableHLO lowers to it again."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp

from jaxsight_source.calls.signature import BoundCall
from jaxsight_source.errors import NotTheSame
from jaxsight_source.programs.given import Stablehlo
from jaxsight_source.stablehlo.proof import prove
from jaxsight_source.written import Written, load


def lowers_again(written: Written, call: BoundCall, origin: Stablehlo) -> Written:
    """Return a text with how it was compared with its StableHLO.

    A text that lowers to other StableHLO is accepted if both run with the same bits: there are
    several ways to lower a computation. What was converted from HLO has operations that JAX does
    not lower to, and is accepted as the same jaxpr if it cannot run.

    Raises:
        NotTheSame: neither the StableHLO nor the bits are the same.
    """
    again = replace(call, function=load(written))
    types = [argument.value for argument in call.arguments]

    def function(*arrays: object) -> object:
        leaves = [*types]
        for position, array in zip(origin.kept, arrays, strict=True):
            leaves[position] = array
        return again.flat(*map(_filled, leaves))

    same = prove(origin.artifact, origin.program, function)
    other_bits = "other bits" in same.not_run
    if same.difference and not same.ran and (origin.is_exact or other_bits):
        raise NotTheSame(written.name, f"other StableHLO: {same.difference}")
    ways = (("stablehlo", not same.difference), ("bits", same.ran))
    return replace(written, as_stablehlo=tuple(way for way, is_so in ways if is_so))


def _filled(leaf: object) -> object:
    """Return zeros for an argument that the program does not take."""
    return jnp.zeros(leaf.shape, leaf.dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf
