"""Judges a predicted program by its StableHLO: whether it is equal, and what XLA makes of it.

It is compiled and run on arguments that its text cannot know: they are drawn by its digest.
"""

from __future__ import annotations

import hashlib
import re
from functools import partial

import jax
import jax.numpy as jnp

from jaxsight.compiler.hlo import read
from jaxsight.dataset.compat import reimport
from jaxsight.dataset.program import Program, Record
from jaxsight.dataset.rows import loading
from jaxsight.dataset.rows.check import ResultComparison, coarsest
from jaxsight.dataset.rows.describe import Rejected, attempt, traced, unpacked
from jaxsight.dataset.schema import PASSED
from jaxsight.dataset.tasks.judging.foreign import plain_leaves

_DRAWS = 2
"""Draws of arguments besides those of the row, a choice, as `comparing` has three in all."""

_CALLS = re.compile(r"lapack_\w+|(?:mhlo|chlo|stablehlo)\.\w+|Sharding|SPMD\w+Shape|Qr|Eigh")
"""Foreign functions that are no effect: LAPACK's, and operations that JAX or XLA replaces."""

_NAMES = re.compile(r"@[\w.$-]+|\s*\{jax\.result_info = \"[^\"]*\"\}|\"jax\.result_info\"")


def prove(program: Program, stablehlo: str, eager: str) -> Record:
    """Return how a predicted program differs from that of a row, and the figures of both.

    Args:
        program: the row's.
        stablehlo: that of the predicted program.
        eager: what this returned without `jit` for the row's arguments, as `packed` writes it.

    Raises:
        Rejected: the row's program cannot be run, or the predicted one calls foreign functions.
    """
    loaded, direction = traced(program)
    reference = attempt("lower", lambda: str(direction.traced.lower().as_text()))
    wanted = attempt("compile the row", lambda: reimport.load(reference, {}))
    calls = attempt("parse", lambda: reimport.custom_calls(stablehlo))
    known = reimport.custom_calls(reference)
    for call in sorted(calls - known):
        if not _CALLS.fullmatch(call):
            raise Rejected("calls a foreign function", call)
    given = attempt("compile", lambda: reimport.load(stablehlo, {}))

    def eagerly(arguments: tuple[object, ...]) -> list[jax.Array]:
        return jax.tree.leaves(loaded.function(*arguments))

    for draw in (0, *_drawn(stablehlo)):
        arguments = loading.arguments(program, draw)
        data = plain_leaves(arguments)
        expected = [*map(jax.device_get, reimport.execute(wanted, data))]
        comparison = ResultComparison(expected, coarsest(direction), eagerly, arguments)
        outcomes = [comparison.outcome(partial(reimport.execute, given, data))]
        if draw == 0:
            outcomes.append(comparison.outcome(lambda: [*map(jnp.asarray, unpacked(eager))]))
        for outcome in outcomes:
            if outcome != PASSED:
                return {"difference": outcome}
    return {
        "difference": "",
        "is_exact": _nameless(stablehlo) == _nameless(reference),
        "before": _figures(wanted),
        "after": _figures(given),
    }


def _drawn(stablehlo: str) -> list[int]:
    """Return numbers of draws that depend on a program."""
    digest = hashlib.blake2b(stablehlo.encode(), digest_size=8 * _DRAWS).digest()
    return [int.from_bytes(digest[at : at + 8], "big") for at in range(0, len(digest), 8)]


def _nameless(stablehlo: str) -> str:
    """Return StableHLO without names of functions, arguments and results."""
    names: dict[str, str] = {}
    return _NAMES.sub(
        lambda found: names.setdefault(found[0], f"@{len(names)}") if "@" in found[0] else "",
        stablehlo,
    )


def _figures(executable: reimport.Executable) -> Record:
    """Return the number of kernels and the bytes of temporaries."""
    graph = read(reimport.hlo(executable))
    temporaries = executable.get_compiled_memory_stats().temp_size_in_bytes
    return {"kernel_count": graph.kernel_count, "temp_bytes": temporaries}
