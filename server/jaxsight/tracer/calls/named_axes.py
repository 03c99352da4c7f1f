"""Axes that a function names and nobody binds: those of the `pmap` or `shard_map` around its calls.

`lax.pmean(x, "batch")` has a meaning only in a program that maps over `batch`. A function that is
traced by itself sees such an axis with one device, as in that program on a machine that has one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from jaxsight.tracer.failures import UserError
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.observations import Caveat
from jaxsight_source.compat.staging import surroundings

Answer = TypeVar("Answer")

_UNBOUND = re.compile(r"\bunbound axis name: (\w+)")
"""`NameError` of JAX: `core.AxisEnv.axis_size` (jax/_src/core.py), 0.4.35 to 0.12."""
_MOST = 8
"""Maximum number of axes, each of which costs a trace; meshes of programs have up to five."""


def bound(trace: Callable[[], Answer]) -> tuple[Answer, tuple[str, ...]]:
    """Return an answer, and the axes that had to be bound for it.

    Args:
        trace: is called again with each axis that it finds unbound.

    Raises:
        UserError: that of `trace`.
    """
    axes: list[str] = []
    while True:
        try:
            with surroundings(None, [(name, 1) for name in axes]):
                return trace(), tuple(axes)
        except UserError as error:
            unbound = _UNBOUND.search(error.failure.message)
            # An axis that is bound already would be asked for without end.
            if unbound is None or unbound[1] in axes or len(axes) == _MOST:
                raise
            axes.append(unbound[1])


def caveats(axes: Iterable[str], chunks: Iterable[Chunk], function: str) -> tuple[Caveat, ...]:
    """Return what is said of a function about the axes that were bound for it."""
    defining = next((chunk for chunk in chunks if function.partition(".")[0] in chunk.binds), None)
    if defining is None:
        return ()
    words = "names the axis `{}`, which nothing here binds: traced with a size of 1"
    return tuple(Caveat(defining.id, words.format(name)) for name in axes)
