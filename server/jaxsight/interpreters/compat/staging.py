"""Tracing of small functions on abstract values, and access to jaxprs of any JAX version.

Applies to JAX 0.8 to 0.12.

Private API used: `pe.trace_to_jaxpr_dynamic`, `lu.wrap_init`, `lu.DebugInfo`,
`api_util.fun_sourceinfo`, `core.shaped_abstractify`, `core.eval_jaxpr`,
`traceback_util.api_boundary`, `DynamicJaxprTracer.val`, `JaxprEqn.ctx.manager`, `core.Literal`,
`core.DropVar`, `core.extend_axis_env_nd`, `config.trace_context`. From 0.11 on `ClosedJaxpr` is
merged into `Jaxpr`, which then has `consts`; `Program` is either.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax._src import api_util, config, core, traceback_util
from jax._src import linear_util as lu
from jax._src.interpreters import partial_eval as pe

_CLOSED: Any = getattr(core, "ClosedJaxpr", None)
_MERGED = _CLOSED is None or _CLOSED is core.Jaxpr

Literal: Any = core.Literal


@dataclass(frozen=True, slots=True)
class Program:
    """A jaxpr with the values of its constants."""

    jaxpr: Any
    consts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Staged:
    """A traced function: its program, its results' tree, and their types before they were arrays.

    `tree` is a `PyTreeDef`.
    """

    program: Program
    tree: Any
    types: tuple[type, ...]

    @property
    def results(self) -> Any:
        """The results as a pytree of their positions."""
        return jax.tree.unflatten(self.tree, range(self.tree.num_leaves))


def is_jaxpr(value: Any) -> bool:
    return isinstance(value, core.Jaxpr) or (_CLOSED is not None and isinstance(value, _CLOSED))


def opened(value: Any) -> Program:
    """Return the program of a jaxpr: an equation's parameter, or a result of `jax.make_jaxpr`."""
    if isinstance(value, Program):
        return value
    if _CLOSED is not None and not _MERGED and isinstance(value, _CLOSED):
        return Program(value.jaxpr, tuple(value.consts))
    return Program(value, tuple(getattr(value, "consts", ()) or ()))


def closed(jaxpr: Any, consts: Sequence[Any]) -> Program:
    """Return a traced jaxpr with its constants.

    JAX 0.12 lists their variables among the inputs until it has their values.
    """
    if len(jaxpr.constvars) != len(consts):
        jaxpr = jaxpr.with_consts(consts)
    return Program(jaxpr, tuple(consts))


def inner_jaxpr(value: Any) -> Any:
    """Return the jaxpr itself, without its constants."""
    if isinstance(value, Program):
        return value.jaxpr
    return (
        value.jaxpr if _CLOSED is not None and not _MERGED and isinstance(value, _CLOSED) else value
    )


def with_inner(value: Any, jaxpr: Any) -> Any:
    """Return a copy of `value` with another jaxpr in it."""
    if isinstance(value, Program):
        return Program(jaxpr, value.consts)
    if _CLOSED is not None and not _MERGED and isinstance(value, _CLOSED):
        return _CLOSED(jaxpr, value.consts)
    return jaxpr


def new_variable(aval: Any) -> Any:
    """Return a new variable of an abstract value."""
    return core.Var(aval)


def is_literal(atom: Any) -> bool:
    return isinstance(atom, core.Literal)


def folded(equation: Any, invars: Sequence[Any]) -> Any:
    """Return the literal into which JAX folds an equation with these operands while tracing.

    Return None if JAX keeps the equation.
    """
    if equation.primitive.name != "convert_element_type" or not is_literal(invars[0]):
        return None
    (made,) = equation.outvars
    return Literal(np.asarray(invars[0].val).astype(made.aval.dtype), made.aval)


def is_ref(value: Any) -> bool:
    """Return whether a value is a mutable array."""
    return isinstance(value, jax.ref.Ref)


def is_tracer(value: Any) -> bool:
    """Return whether a value is a tracer, which stands for an array during tracing."""
    return isinstance(value, core.Tracer)


def variable(tracer: Any) -> Any:
    """Return the variable of a traced program that a tracer stands for (`DynamicJaxprTracer.val`).

    It stays available after the trace. Return None for other tracers.
    """
    return getattr(tracer, "val", None)


def is_dropped(var: Any) -> bool:
    return isinstance(var, core.DropVar)


_traced: Any = traceback_util.api_boundary(pe.trace_to_jaxpr_dynamic)
"""Removes JAX's own frames from the tracebacks of errors, as `jax.make_jaxpr` does."""


def stage(
    function: Callable[..., Any],
    avals: Sequence[Any],
    about: Callable[..., Any] | None = None,
    names: Sequence[str] = (),
) -> Staged:
    """Trace `function` on abstract values, as `jax.make_jaxpr` does in three times the time.

    Raise whatever `function` raises.

    Args:
        about: the function that errors name, with `names` for its arguments.
    """
    seen: list[tuple[Any, tuple[type, ...]]] = []

    def flattened(*args: Any) -> list[Any]:
        leaves, tree = jax.tree.flatten(function(*args))
        seen.append((tree, tuple(map(type, leaves))))
        return leaves

    source = api_util.fun_sourceinfo(about) if about is not None else "<unknown>"
    info = lu.DebugInfo("sourcerize", source, tuple(names) or None, None)
    traced = _traced(lu.wrap_init(flattened, debug_info=info), list(avals))
    jaxpr, consts = traced[0], traced[-1]
    return Staged(closed(jaxpr, consts), *seen[-1])


def abstract(value: Any) -> Any:
    """Return the abstract value of an array, a struct or a number, as JAX traces it.

    Raise `TypeError` for anything else.
    """
    of: Any = core.shaped_abstractify
    return of(value)


def trace_settings() -> Any:
    """Return the settings that affect tracing, such as 64-bit types, as a hashable value."""
    return config.trace_context()


def evaluate(program: Program, *args: Any) -> list[Any]:
    """Bind every equation of a program, with `args` as its inputs."""
    return list(core.eval_jaxpr(program.jaxpr, program.consts, *args))


@contextlib.contextmanager
def surroundings(context: Any, axes: Sequence[tuple[Any, int]] = ()) -> Iterator[None]:
    """Enter an equation's own context, with the sizes of the mapped axes around it."""
    with contextlib.ExitStack() as stack:
        if axes:
            stack.enter_context(core.extend_axis_env_nd(list(axes)))
        if context is not None:
            stack.enter_context(context.manager)
        yield


def on_its_mesh(context: Any) -> contextlib.AbstractContextManager[None]:
    """Return the `surroundings` of an equation over a mesh, and a null context for others.

    Most equations are not over a mesh.
    """
    mesh = getattr(context, "cur_abstract_mesh", None)
    return contextlib.nullcontext() if mesh is None or mesh.empty else surroundings(context)
