"""Programs that need nothing but JAX: no primitives of other packages, few calls of the host.

Calls of the host stay if their function was captured, but for `jax.debug` calls that did not fail.
What others return becomes zeros. A primitive of another package, such as equinox's `unvmap_any`,
becomes what its implementation does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

import jax.numpy as jnp

from jaxsight_repro.compat import host_callbacks
from jaxsight_repro.compat.pickling import module_of
from jaxsight_source.compat.inner import walk
from jaxsight_source.compat.jaxpr_types import Equation
from jaxsight_source.compat.staging import Program, stage
from jaxsight_source.primal import inlined

_RETURNING = frozenset({"pure_callback", "io_callback"})
_CALLBACKS = _RETURNING | {"debug_callback", "debug_print"}


@dataclass(slots=True)
class Left:
    """What was left out of a program."""

    failing: Collection[str] = ()
    """The names of functions of the host that failed."""
    callbacks: int = 0
    """The number of calls of the host that were left out."""

    def standalone(self, jaxpr: object) -> object:
        """Return a jaxpr that needs nothing but JAX, at every level."""
        return inlined(jaxpr, self._replacement)

    def _replacement(self, equation: Equation) -> Program | None:
        """Return the program that takes the place of an equation, if one does."""
        name = equation.primitive.name
        if name in _CALLBACKS:
            function = host_callbacks.function_of(name, equation.params)
            if function is not None and (name in _RETURNING or function.name in self.failing):
                return None
            self.callbacks += name in _RETURNING
            avals = [var.aval for var in equation.outvars]
            return stage(
                lambda *_: [jnp.zeros(aval.shape, aval.dtype) for aval in avals],
                [atom.aval for atom in equation.invars],
            ).program
        if module_of(equation.primitive).partition(".")[0] in ("", "jax"):
            return None
        return _implementation(equation)


def _implementation(equation: Equation) -> Program | None:
    """Return what the implementation of a primitive does, if JAX can trace that."""
    implementation: Callable[..., object] = getattr(equation.primitive, "impl")  # noqa: B009

    def implemented(*arguments: object) -> object:
        return implementation(*arguments, **equation.params)

    try:
        program = stage(implemented, [atom.aval for atom in equation.invars]).program
    except Exception:  # noqa: BLE001 - code of another package
        return None
    if any(inner.primitive is equation.primitive for _, inner in walk(program.jaxpr)):
        return None  # it compiles the primitive itself
    types = [
        [(a.aval.shape, a.aval.dtype) for a in atoms]
        for atoms in (program.jaxpr.outvars, equation.outvars)
    ]
    return program if types[0] == types[1] and not program.consts else None
