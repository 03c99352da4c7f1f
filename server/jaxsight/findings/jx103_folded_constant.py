"""JX103: what XLA folded lies in the executable and in device memory."""

from __future__ import annotations

from collections.abc import Iterator

from jaxsight.findings.noticed import Noticed
from jaxsight.findings.reading import MIB, Reading, size

CODE = "JX103"
LARGE = MIB


def find(reading: Reading) -> Iterator[Noticed]:
    """Each folded constant of a mebibyte or more in the optimized program."""
    if reading.compiled is None:
        return
    took = reading.compiled.seconds
    for constant in reading.compiled.graph.constants:
        if not constant.folded or constant.value.bytes < LARGE:
            continue
        at = next((path for path in constant.equations if path in reading.flow.steps), "")
        what = f"{reading.quoted(at)} was folded into" if at else "XLA made"
        yield Noticed(
            CODE,
            f"{what} a constant of {size(constant.value.bytes)} ({constant.value.text}) that lies in the executable "
            f"and in device memory (compiled in {took:.1f} s). Compute it from `jnp.arange` or `jax.lax.iota` where it is used "
            "(`jnp.where(i == k, …)`), or make it an argument.",
            at,
        )
