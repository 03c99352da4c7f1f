"""Tracing of small functions on abstract values, and access to jaxprs of any JAX version.

Applies to JAX 0.8 to 0.12.

Private API used: `pe.trace_to_jaxpr_dynamic`, `lu.wrap_init`, `lu.DebugInfo`,
`api_util.fun_sourceinfo`, `core.shaped_abstractify`, `core.eval_jaxpr`,
`traceback_util.api_boundary`, `DynamicJaxprTracer.val`, `JaxprEqn.ctx.manager`, `core.Literal`,
`core.DropVar`, `core.trace_state_clean`, `core.extend_axis_env_nd`, `config.trace_context`. From
0.11 on `ClosedJaxpr` is merged into `Jaxpr`, which then has `consts`; `Program` is either.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard, TypeVar, cast

import jax
import numpy as np
from jax._src import api_util, config, core, traceback_util
from jax._src import linear_util as lu
from jax._src.interpreters import partial_eval as pe

from jaxsight_source.compat.jaxpr_types import Atom, Aval, Context, Equation, Jaxpr, Literal, Var

_CLOSED: type = getattr(core, "ClosedJaxpr", core.Jaxpr)
_MERGED = _CLOSED is core.Jaxpr


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A jaxpr with the values of its constants; a key by its identity, as jaxprs are."""

    jaxpr: Jaxpr
    consts: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Staged:
    """A traced function: its program, its results' tree, and their types before tracing."""

    program: Program
    tree: jax.tree_util.PyTreeDef
    types: tuple[type, ...]

    @property
    def results(self) -> object:
        """The results as a pytree of their positions."""
        return jax.tree.unflatten(self.tree, range(self.tree.num_leaves))


def is_jaxpr(value: object) -> bool:
    return isinstance(value, (core.Jaxpr, _CLOSED))


def opened(value: object) -> Program:
    """Return the program of a jaxpr: an equation's parameter, or a result of `jax.make_jaxpr`."""
    if isinstance(value, Program):
        return value
    return Program(open_jaxpr(value), tuple(getattr(value, "consts", ()) or ()))


def closed(jaxpr: Jaxpr, consts: Sequence[object]) -> Program:
    """Return a traced jaxpr with its constants.

    JAX 0.12 lists their variables among the inputs until it has their values.
    """
    if len(jaxpr.constvars) != len(consts):
        with_consts = getattr(jaxpr, "with_consts")  # noqa: B009 - unknown to earlier versions
        jaxpr = with_consts(consts)
    return Program(jaxpr, tuple(consts))


def open_jaxpr(value: object) -> Jaxpr:
    """Return the `core.Jaxpr` itself, without its constants."""
    if isinstance(value, Program) or (not _MERGED and isinstance(value, _CLOSED)):
        value = getattr(value, "jaxpr")  # noqa: B009 - unknown to later versions
    return cast(Jaxpr, value)


def with_inner(value: object, jaxpr: Jaxpr) -> object:
    """Return a copy of `value` with another jaxpr in it."""
    if isinstance(value, Program):
        return Program(jaxpr, value.consts)
    if not _MERGED and isinstance(value, _CLOSED):
        return _CLOSED(jaxpr, getattr(value, "consts"))  # noqa: B009
    return jaxpr


def rebuilt(
    jaxpr: Jaxpr, equations: Sequence[Equation], inputs: Sequence[Var], outputs: Sequence[Atom]
) -> Jaxpr:
    """Return a jaxpr of other equations, inputs and outputs; inputs of the original keep names."""
    info = jaxpr.debug_info
    if info is not None:
        names = {
            id(var): name for var, name in zip(jaxpr.invars, info.arg_names or (), strict=False)
        }
        known = tuple(names.get(id(var), "") for var in inputs) if names else None
        info = info._replace(arg_names=known, result_paths=None)
    return jaxpr.replace(
        eqns=list(equations), invars=list(inputs), outvars=list(outputs), debug_info=info
    )


def new_variable(aval: Aval) -> Var:
    """Return a new variable of an abstract value."""
    return cast(Var, core.Var(cast(core.AbstractValue, aval)))


def is_literal(atom: object) -> TypeGuard[Literal]:
    return isinstance(atom, core.Literal)


def substituted(atoms: Iterable[Atom], others: Mapping[int, Atom]) -> list[Atom]:
    """Return atoms with others in place of the variables whose ids are keys."""
    return [others.get(id(atom), atom) for atom in atoms]


def folded(equation: Equation, invars: Sequence[Atom]) -> Literal | None:
    """Return the literal into which JAX folds an equation with these operands while tracing.

    Return None if JAX keeps the equation (`_convert_elt_type_folding_rule`, jax/_src/lax/lax.py).
    """
    operand = invars[0] if equation.primitive.name == "convert_element_type" else None
    if not is_literal(operand):
        return None
    (converted,) = equation.outvars
    return new_literal(np.asarray(operand.val).astype(converted.aval.dtype), converted.aval)


def new_literal(value: object, aval: Aval) -> Literal:
    """Return a literal of an abstract value."""
    make: Callable[[object, Aval], Literal] = cast(Any, core.Literal)
    return make(value, aval)


def is_ref(value: object) -> bool:
    """Return whether a value is a mutable array."""
    return isinstance(value, jax.ref.Ref)


def is_tracer(value: object) -> bool:
    """Return whether a value is a tracer, which stands for an array during tracing."""
    return isinstance(value, core.Tracer)


def variable(tracer: object) -> Var | None:
    """Return the variable of a traced program that a tracer stands for (`DynamicJaxprTracer.val`).

    It stays available after the trace. Return None for other tracers.
    """
    return getattr(tracer, "val", None)


def is_dropped(var: object) -> bool:
    return isinstance(var, core.DropVar)


_traced: Callable[..., tuple[Jaxpr, *tuple[object, ...], list[object]]] = (
    traceback_util.api_boundary(pe.trace_to_jaxpr_dynamic)
)
"""Removes JAX's own frames from the tracebacks of errors, as `jax.make_jaxpr` does."""


def stage(
    function: Callable[..., object],
    avals: Sequence[Aval],
    about: Callable[..., object] | None = None,
    names: Sequence[str] = (),
) -> Staged:
    """Trace `function` on abstract values, as `jax.make_jaxpr` does in three times the time.

    Raise whatever `function` raises.

    Args:
        about: the function that errors name, with `names` for its arguments.
    """
    structures: list[tuple[jax.tree_util.PyTreeDef, tuple[type, ...]]] = []

    def flattened(*args: object) -> list[object]:
        leaves, tree = jax.tree.flatten(function(*args))
        structures.append((tree, tuple(map(type, leaves))))
        return leaves

    source = api_util.fun_sourceinfo(about) if about is not None else "<unknown>"
    info = lu.DebugInfo("sourcerize", source, tuple(names) or None, None)
    traced = _traced(lu.wrap_init(flattened, debug_info=info), list(avals))
    jaxpr, consts = traced[0], traced[-1]
    return Staged(closed(jaxpr, consts), *structures[-1])


def abstract(value: object) -> Aval:
    """Return the abstract value of an array, a struct or a number, as JAX traces it.

    Raise `TypeError` for anything else.
    """
    aval: Aval = core.shaped_abstractify(value)  # type: ignore[no-untyped-call]
    return aval


def is_tracing() -> bool:
    """Return whether a transformation traces the code that calls this."""
    return not core.trace_state_clean()


def trace_settings() -> Hashable:
    """Return the settings that affect tracing, such as 64-bit types, as a hashable value."""
    settings: Hashable = config.trace_context()
    return settings


def evaluate(program: Program, *args: object) -> list[jax.Array]:
    """Bind every equation of a program, with `args` as its inputs."""
    return list(core.eval_jaxpr(cast(core.Jaxpr, program.jaxpr), program.consts, *args))


@contextlib.contextmanager
def surroundings(
    context: Context | None, axes: Sequence[tuple[Hashable, int]] = ()
) -> Iterator[None]:
    """Enter an equation's own context, with the sizes of the mapped axes around it."""
    with contextlib.ExitStack() as stack:
        if axes:
            stack.enter_context(core.extend_axis_env_nd(list(axes)))
        if context is not None:
            stack.enter_context(context.manager)
        yield


def on_its_mesh(context: Context) -> contextlib.AbstractContextManager[None]:
    """Return the `surroundings` of an equation over a mesh, and a null context for others.

    Most equations are not over a mesh.
    """
    mesh = getattr(context, "cur_abstract_mesh", None)
    return contextlib.nullcontext() if mesh is None or mesh.empty else surroundings(context)


F = TypeVar("F", bound=Callable[..., object])


def with_parameters(function: F, names: Iterable[str]) -> F:
    """Give a function a signature, from which JAX takes the names of arguments; return it.

    Raises:
        ValueError: these are no names of parameters.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    setattr(function, "__signature__", signature)  # noqa: B010 - functions declare no such attribute
    return function
