"""Calls of primitives with which JAX tests what it exports."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxsight_dataset.compat.harnesses import every
from jaxsight_dataset.mining.calls import Mined, Origin


def mine(start: int, step: int) -> Mined:
    """Return programs of each `step`-th of JAX's harnesses for CPUs, from number `start`."""
    mined = Mined()
    for harness in every()[start::step]:
        origin = Origin(
            f"jax.harnesses.{harness.group_name}",
            "jax",
            jax.__version__,
            f"jax/_src/internal_test_util/test_harnesses.py: {harness.fullname}",
            "Apache-2.0",
        )
        arguments = _arguments(harness)
        if arguments is not None:
            mined.add(harness.dyn_fun, arguments, {}, origin)
    return mined


def _arguments(harness: Any) -> Any:
    """Return the arguments of a harness; None if they need what is not here."""
    try:
        return harness.dyn_args_maker(np.random.RandomState(0))
    except Exception:  # noqa: BLE001 - whatever a harness raises
        return None
