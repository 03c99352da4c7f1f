"""Runs a predicted program, in a process of its own: what it returns decides nothing.

The module is loaded and traced, and its StableHLO returned. `proving` judges that, in a process
that no predicted code ran in.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxsight.dataset.program import Program, Record
from jaxsight.dataset.rows import loading
from jaxsight.dataset.rows.describe import Rejected, attempt, packed
from jaxsight.dataset.rows.directions import forward, primitives
from jaxsight.dataset.schema import LONGEST
from jaxsight.sourcerizer.api import write_program
from jaxsight.sourcerizer.errors import TooLarge, TooLong, Unsourceable
from jaxsight.sourcerizer.options import Options
from jaxsight.sourcerizer.programs.contents import of_content
from jaxsight.sourcerizer.stablehlo import UnreadableProgram

_REFUSED = frozenset({"call_exported"})
"""Primitives that are no JAX source: they contain a lowered program."""

_NARROW = 'import jax\n\njax.config.update("jax_enable_x64", False)\n\n'


def lower(program: Program) -> Record:
    """Return the StableHLO of a predicted program, and what it returns without `jit`.

    Its function takes the arguments of the row, or the arrays in them one after another, keys as
    their data: as StableHLO and HLO have them.

    Raises:
        Rejected: it cannot be loaded, traced, lowered or run.
    """
    before = dict(jax.config.values)
    try:
        loaded = attempt("load", lambda: loading.load(program))
        arguments = loading.arguments(program)
        try:
            direction = attempt("trace", lambda: forward(loaded.function, arguments))
        except Rejected:
            arguments = tuple(plain_leaves(arguments))
            direction = attempt("trace", lambda: forward(loaded.function, arguments))
        if refused := _REFUSED & {*primitives(direction.program)}:
            raise Rejected("contains a lowered program", f"primitive {min(refused)}")
        stablehlo = attempt("lower", lambda: str(direction.traced.lower().as_text()))
        results = attempt("run", lambda: jax.tree.leaves(loaded.function(*arguments)))
        return {"stablehlo": stablehlo, "results": attempt("run", lambda: packed(results))}
    finally:
        for name, value in before.items():
            if jax.config.values[name] != value:
                # The next prediction finds what this one did.
                jax.config.update(name, value)  # type: ignore[no-untyped-call]


def plain_leaves(arguments: tuple[object, ...]) -> list[jax.Array]:
    """Return the arrays of arguments, keys as their data."""
    return [
        jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
        for leaf in jax.tree.leaves(arguments)
    ]


def source(text: str, name: str) -> str:
    """Return the source that jaxsight writes for StableHLO or HLO.

    It switches 64-bit types off where it was written for a program without them.

    Raises:
        Rejected: it writes none.
    """
    options = Options(style="pretty", run=False)
    try:
        written = str(write_program(of_content(text.encode()), options, name).source)
    except (Unsourceable, UnreadableProgram, TooLarge, TooLong) as error:
        raise Rejected("no source", str(error)[:LONGEST]) from error
    is_narrow = "jax_enable_x64 off" in written and jax.config.values["jax_enable_x64"]
    return f"{_NARROW}{written}" if is_narrow else written
