"""Convert a traced program to plain data: the answer to `Outline`."""

from __future__ import annotations

import ast
import contextlib
from typing import Any

import jax
import numpy as np
from jax.stages import Traced

from jaxsight.tracer.compat import jaxprs, lowering
from jaxsight.tracer.job import Job
from jaxsight.tracer.programs import folding_costs, jaxpr_text
from jaxsight.tracer.programs.call_tree import CallTree, OuterScope
from jaxsight.tracer.programs.pallas_kernels import kernel_facts
from jaxsight.wire.messages.replies import Outlined
from jaxsight.wire.messages.requests import Outline
from jaxsight.wire.program import (
    CONSTANT,
    INPUT,
    LITERAL,
    RESULT,
    Body,
    ProgramValue,
    Step,
    TracedProgram,
)
from jaxsight_source.compat import avals, locations
from jaxsight_source.compat.equations import argument_names
from jaxsight_source.compat.inner import Inner, inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Atom, Aval, Equation, Jaxpr, Var
from jaxsight_source.compat.staging import is_jaxpr, opened

_LONGEST_PARAMETER = 400
"""Longest parameter in the answer; rules read numbers, axes and names, no longer ones."""
_LISTED_ELEMENTS = 64
"""Elements of a captured array that are listed one by one: those of indices and axes."""
_LARGEST_MEASURED = 4 << 20
"""Maximum size in bytes of captured arrays whose least and greatest elements are computed."""
_SEARCHED_SIZES = range(1 << 10, 64 << 20)
"""Sizes in bytes of captured arrays whose generating expression is searched (JX104, JX101)."""


def outline(job: Job[Outline]) -> Outlined:
    """Return an earlier trace as plain data.

    Raises:
        UserError: it is no longer kept.
    """
    traced = job.traces.of(job.request.trace).shown
    outliner = ProgramOutliner()
    program = outliner.program(traced)
    calls = tuple(outliner.tree.calls)
    return Outlined(job.request.id, program, folding_costs.predicted(traced), calls)


class ProgramOutliner:
    def __init__(self) -> None:
        self._values: list[ProgramValue] = []
        self._numbers: dict[Atom, int] = {}
        self._kinds: dict[object, tuple[str, str, tuple[int, ...], int, bool]] = {}
        self._count = 0
        self._cut = False
        self._forward = False
        """Whether the equation around is of the forward pass of a derivative: scopes inside are
        relative to it.
        """
        self.tree = CallTree(())
        """The calls of the user's functions that equations were created in."""
        self._around = OuterScope()

    def program(self, traced: Traced) -> TracedProgram:
        program = opened(traced.jaxpr)
        inside = program.jaxpr
        self.tree = CallTree(inside.eqns)
        for var, name in zip(inside.invars, argument_names(program), strict=True):
            self._number(var, INPUT, name)
        for var, constant in zip(inside.constvars, program.consts, strict=False):
            self._number(var, CONSTANT, _rule(constant), constant)
        body = self._body(inside, "", "")
        return TracedProgram(tuple(self._values), body, lowering.donated(traced), self._cut)

    def _body(self, opened: Jaxpr, name: str, prefix: str) -> Body:
        inputs = tuple(self._number(var, INPUT) for var in (*opened.constvars, *opened.invars))
        steps = []
        for index, equation in enumerate(opened.eqns):
            if self._count >= jaxpr_text.MOST_EQUATIONS:
                self._cut = True
                break
            self._count += 1
            steps.append(self._step(equation, f"{prefix}{index}", opened))
        outputs = tuple(self._number(var, RESULT) for var in opened.outvars)
        return Body(name, inputs, outputs, tuple(steps))

    def _step(self, equation: Equation, path: str, jaxpr: Jaxpr) -> Step:
        operands = tuple(self._number(var, RESULT) for var in equation.invars)
        scope = locations.scope(equation)
        outer = self._forward, self._around
        self._around = around = self.tree.scope_of(equation, self._around, jaxpr)
        self._forward = forward = (self._forward or "jvp(" in scope) and not around.backward
        # A jaxpr that several equations share is repeated for each, because facts about its values
        # differ.
        bodies = [self._inner(part, f"{path}/{part.name}/") for part in inner_jaxprs(equation)]
        self._forward, self._around = outer
        results = tuple(self._number(var, RESULT) for var in equation.outvars)
        skipped = jaxprs.defaults(equation)
        parameters = (
            (key, _plain(_python(value)))
            for key, value in equation.params.items()
            if key not in skipped and not is_jaxpr(value)
        )
        return Step(
            path,
            equation.primitive.name,
            operands,
            results,
            self.tree.span(equation),
            tuple((key, text) for key, text in parameters if 0 < len(text) <= _LONGEST_PARAMETER),
            tuple(bodies),
            around.backward,
            forward,
            "vmap(" in scope,
            around.scope or (),
            around.call,
            kernel_facts(equation) if equation.primitive.name == "pallas_call" else None,
        )

    def _inner(self, part: Inner, prefix: str) -> Body:
        # A jaxpr that is repeated has the same variables: each body numbers its own.
        outer, self._numbers = self._numbers, {}
        try:
            for var, constant in zip(part.jaxpr.constvars, part.program.consts, strict=False):
                # The "constants" of `run_scoped` are the operands that its jaxpr closes over.
                if not isinstance(constant, jax.core.Tracer):
                    self._number(var, CONSTANT, constant=constant)
            return self._body(part.jaxpr, part.name, prefix)
        finally:
            self._numbers = outer

    def _number(self, var: Var, origin: str, text: str = "", constant: object = None) -> int:
        if hasattr(var, "val"):
            self._values.append(self._value(var.aval, LITERAL, _literal(var.val)))
            return len(self._values) - 1
        number = self._numbers.get(var)
        if number is None:
            number = self._numbers[var] = len(self._values)
            self._values.append(self._value(var.aval, origin, text, constant))
        return number

    def _value(self, aval: Aval, origin: str, name: str, constant: object = None) -> ProgramValue:
        """Return a value; most values have one of few types, which are cached."""
        kind = self._kinds.get(aval)
        if kind is None:
            shape = tuple(size for size in getattr(aval, "shape", ()) if isinstance(size, int))
            dtype = str(getattr(aval, "dtype", ""))
            kind = avals.text(aval), dtype, shape, avals.size(aval), avals.weak(aval)
            self._kinds[aval] = kind
        type_text, dtype, shape, size, weak = kind
        integers, numbers = _listed(constant)
        return ProgramValue(type_text, dtype, shape, size, origin, weak, name, integers, numbers)


def _literal(value: object) -> str:
    try:
        return repr(np.asarray(value).item())
    except (TypeError, ValueError):
        return ""


def _rule(constant: object) -> str:
    """Return an expression that generates a captured array, or `""` if there is no short one.

    For example `jnp.arange(1, 10, dtype=jnp.int32)`.
    """
    from jaxsight_source.api import expression_of

    if getattr(constant, "nbytes", 0) not in _SEARCHED_SIZES or not _may_be_regular(constant):
        return ""
    # Expressions are compared with the array: the program's own options are not set here.
    with jax.enable_x64(str(getattr(constant, "dtype", "")).endswith(("64", "128"))):
        return expression_of(constant)


def _listed(constant: object) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """All integers or finite floats of a small captured array.

    The least and greatest integer of a larger one.
    """
    if not 0 < getattr(constant, "nbytes", 0) <= _LARGEST_MEASURED:
        return (), ()
    try:
        array = np.asarray(constant)
    except (TypeError, ValueError):
        return (), ()
    is_small = array.size <= _LISTED_ELEMENTS
    if array.dtype.kind == "f" and is_small and np.isfinite(array).all():
        return (), tuple(map(float, array.reshape(-1)))
    if array.dtype.kind not in "biu":
        return (), ()
    return tuple(map(int, array.reshape(-1) if is_small else (array.min(), array.max()))), ()


def _may_be_regular(constant: Any) -> bool:
    """Return whether an array may be regular, from up to 64 of its first elements.

    Most arrays are not, and need not be read completely.
    """
    try:
        few = np.asarray(constant[:4] if constant.ndim == 1 else constant[:2])
    except (TypeError, ValueError, IndexError):
        return False
    flat = few.reshape(-1)[:64]
    if flat.dtype.kind not in "biuf" or flat.size < 2:
        return False
    if (flat == flat[0]).all() or few.ndim > 1:
        return bool(len(np.unique(flat)) <= max(4, few.shape[-1]))
    return bool(len(np.unique(np.diff(flat))) == 1)


def _python(value: object) -> object:
    """Return a parameter with Python integers in place of NumPy's, which `vmap` leaves in it."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, tuple | list) and type(value) in (tuple, list):
        return type(value)(map(_python, value))
    return value


def _plain(value: object) -> str:
    """Return a parameter as a Python literal if it is one, else its name or text."""
    is_axes = isinstance(value, tuple) and all(type(part) is int for part in value)
    if is_axes or type(value) in (bool, int, str, type(None)):
        return repr(value)
    if isinstance(value, float | tuple | list):
        text = repr(value)
        with contextlib.suppress(ValueError, SyntaxError):
            ast.literal_eval(text)
            return text
    return jaxpr_text.parameter_text(value)
