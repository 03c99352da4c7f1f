"""Programs that need nothing but JAX: no primitives of other packages, few calls of the host.

Calls of the host stay if their function was captured, but for `jax.debug` calls that did not fail.
What others return becomes zeros. A primitive of another package, such as equinox's `unvmap_any`,
becomes what its implementation does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import jax.numpy as jnp

from jaxsight_repro.compat import host_callbacks
from jaxsight_repro.compat.pickling import module_of
from jaxsight_source.compat.inner import replaced
from jaxsight_source.compat.jaxpr_types import Atom, Equation
from jaxsight_source.compat.staging import (
    Program,
    is_dropped,
    new_variable,
    open_jaxpr,
    stage,
    substituted,
    with_inner,
)

_RETURNING = frozenset({"pure_callback", "io_callback"})
_CALLBACKS = _RETURNING | {"debug_callback", "debug_print"}


@dataclass(slots=True)
class Left:
    """What was left out of a program."""

    failing: Collection[str] = ()
    """The names of functions of the host that failed."""
    callbacks: int = 0
    """The number of calls of the host that were left out."""
    _rewritten: dict[int, tuple[object, object]] = field(default_factory=dict)

    def standalone(self, jaxpr: object) -> object:
        """Return a jaxpr that needs nothing but JAX, at every level."""
        if id(jaxpr) not in self._rewritten:
            self._rewritten[id(jaxpr)] = jaxpr, self._rewrite(jaxpr)
        return self._rewritten[id(jaxpr)][1]

    def _rewrite(self, jaxpr: object) -> object:
        inside = open_jaxpr(jaxpr)
        equations: list[Equation] = []
        values: dict[int, Atom] = {}
        changed = False
        for equation in inside.eqns:
            operands = substituted(equation.invars, values)
            replacement = self._replacement(equation)
            if replacement is not None:
                changed = True
                _inline(replacement, operands, equation, equations, values)
                continue
            params = replaced(equation.params, lambda part: self.standalone(part.value))
            changed |= any(params[name] is not equation.params[name] for name in params)
            equations.append(equation.replace(invars=operands, params=params))
        if not changed:
            return jaxpr
        effects = {effect for equation in equations for effect in equation.effects}
        outputs = substituted(inside.outvars, values)
        return with_inner(jaxpr, inside.replace(eqns=equations, outvars=outputs, effects=effects))

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
    types = [
        [(a.aval.shape, a.aval.dtype) for a in atoms]
        for atoms in (program.jaxpr.outvars, equation.outvars)
    ]
    return program if types[0] == types[1] and not program.consts else None


def _inline(
    program: Program,
    operands: Sequence[Atom],
    equation: Equation,
    equations: list[Equation],
    values: dict[int, Atom],
) -> None:
    """Append the equations of a program that takes the place of an equation."""
    own: dict[int, Atom] = dict(zip(map(id, program.jaxpr.invars), operands, strict=True))
    for inner in program.jaxpr.eqns:
        made = [var if is_dropped(var) else new_variable(var.aval) for var in inner.outvars]
        inputs = substituted(inner.invars, own)
        own.update(zip(map(id, inner.outvars), made, strict=True))
        equations.append(inner.replace(invars=inputs, outvars=made))
    results = substituted(program.jaxpr.outvars, own)
    values.update(zip(map(id, equation.outvars), results, strict=True))
