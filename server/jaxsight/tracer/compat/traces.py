"""JAX's stack of traces while user code runs, from the innermost outwards.

This applies to JAX 0.8 to 0.12.

Private API used: `core.trace_ctx`, `core.get_axis_env`, `Trace.parent_trace`,
`DynamicJaxprTrace.frame` (`debug_info`, `tracing_eqns`), `JaxprStackFrame.add_eqn` (called for each
equation), `BatchTrace.axis_data`, the values of tracers (`val`, `primal`),
`LinearizeTrace.is_vjp` (since 0.10), the local `length` of `lax.scan`, exclusions of
`source_info_util` and `traceback_util`, `traceback_util.include_filename`; for leaked tracers
`Traced._consts` (0.10 and newer), `Traced._args_flat` and `_num_consts` (0.8),
`core.escaped_tracer_error` and `Tracer._trace`.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, cast

from jax._src import core, source_info_util, traceback_util
from jax._src.interpreters.ad import JVPTrace, LinearizeTrace
from jax._src.interpreters.batching import BatchTrace
from jax._src.interpreters.partial_eval import (
    DynamicJaxprTrace,
    DynamicJaxprTracer,
    JaxprStackFrame,
)
from jax.stages import Traced

from jaxsight.meshes.compat import shardings
from jaxsight.tracer.compat.replacing import replaced
from jaxsight.tracer.isolation.code_origins import outwards
from jaxsight.wire.meshes import Sharding
from jaxsight_source.compat.jaxpr_types import Equation, Var
from jaxsight_source.compat.staging import open_jaxpr

_PLAIN = {
    "checkpoint / remat": "checkpoint",
    "cond": "cond branch",
    "fori_loop": "fori_loop body",
    "scan": "scan body",
    "while_body": "while body",
    "while_cond": "while cond",
}

_LOOPS = frozenset({"scan", "fori_loop", "while_body", "while_cond"})


def stage_text(traced_for: str, length: object = None, axes: Sequence[str] | None = None) -> str:
    """Return the name of a stage for users; for loops, with their length if it is known.

    Args:
        traced_for: JAX's name.
        length: the length of a loop, if it is an integer.
        axes: the named manual axes of a `shard_map`; that of `pmap` may have no name.
    """
    if axes is not None:
        return f"shard_map over {', '.join(axes)}" if axes else "pmap"
    text = _PLAIN.get(traced_for, traced_for)
    return f"{text} (length {length})" if isinstance(length, int) else text


@dataclass(frozen=True, slots=True)
class StagedFunction:
    """A jaxpr that can be identified again, by its stage and its function.

    The function is JAX's `name at file:line`.
    """

    traced_for: str
    source: str


@dataclass(frozen=True, slots=True)
class Pass:
    """A trace of a loop's body.

    JAX traces a body again later in the same call if the carry's weak types change
    (`_promote_weak_typed_input` in jax/_src/lax/control_flow/loops.py).
    """

    loop: int
    staged: StagedFunction
    at: int


@dataclass(frozen=True, slots=True)
class Situation:
    """The place where user code is running.

    `inside` is for users, outermost first; its last `own` entries are within the innermost jaxpr
    under construction.
    `staged` is the innermost jaxpr under construction, `inputs` the avals of its inputs.
    `passes` are those of the loops around, innermost first.
    """

    inside: tuple[str, ...]
    own: int
    staged: StagedFunction | None
    inputs: tuple[object, ...]
    passes: tuple[Pass, ...]


def current() -> object:
    """Return the trace of the next operation.

    It is `None` while JAX 0.12 abstractly evaluates a rule of a primitive.
    """
    return core.trace_ctx.trace


def named_axes() -> tuple[str, ...]:
    """Return the named axes in scope, such as those of `vmap` and `shard_map`, sorted."""
    sizes: Mapping[object, int] = core.get_axis_env().axis_sizes  # type: ignore[no-untyped-call]
    return tuple(sorted(name for name in sizes if isinstance(name, str)))


def reference(trace: Any) -> Callable[[], object]:
    """Return a weak reference: a strong one would keep the trace's tracers alive."""
    weak_reference: Callable[[], object] = trace._weakref
    return weak_reference


def situation(trace: object) -> Situation:
    """Describe `trace`, which must be the current one, without the outermost jit."""
    inside: list[str] = []
    own = 0
    staged: StagedFunction | None = None
    inputs: tuple[object, ...] = ()
    loops = 0
    passes: list[Pass] = []
    while trace is not None and not isinstance(trace, core.EvalTrace):
        match trace:
            case DynamicJaxprTrace():
                info = trace.frame.debug_info
                known = (info.traced_for, info.func_src_info) if info is not None else ("jaxpr", "")
                here = StagedFunction(*map(str, known))
                traced_for = here.traced_for
                if staged is None:
                    staged, inputs = here, tuple(var.aval for var in trace.frame.invars)
                    own = len(inside)
                length = None
                if traced_for in _LOOPS and (frame := _loop_frame(loops)) is not None:
                    loops += 1
                    # One frame traces a body twice: the second time at a later instruction.
                    passes.append(Pass(id(frame), here, frame.f_lasti))
                    # Traces do not hold it; `scan` infers the length before it traces.
                    length = frame.f_locals.get("length")
                axes: tuple[str, ...] | None = None
                if traced_for == "shard_map" and trace.frame.invars:
                    axes = shardings.manual_axes(var.aval for var in trace.frame.invars)
                inside.append(stage_text(traced_for, length, axes))
            case BatchTrace():
                axis = trace.axis_data
                named = f" (axis {axis.name!r})" if isinstance(axis.name, str) else ""
                inside.append(f"vmap over {axis.size}{named}")
            case JVPTrace():
                inside.append("jvp")
            case LinearizeTrace():
                inside.append("grad" if getattr(trace, "is_vjp", True) else "linearize")
            case _:
                inside.append(type(trace).__name__.removesuffix("Trace"))
        trace = getattr(trace, "parent_trace", None)
    if inside and inside[-1] == "jit":
        inside.pop()
    return Situation(tuple(reversed(inside)), own, staged, inputs, tuple(passes))


@dataclass(frozen=True, slots=True)
class PlacedArgument:
    """An array among the arguments of the traced function.

    `sharding` is `None` if it is the same on all devices.
    """

    shape: tuple[int, ...]
    dtype: object
    sharding: Sharding | None


def placed(trace: Any, arguments: Sequence[PlacedArgument]) -> dict[int, Sharding]:
    """Return the shardings of a function's arguments by the ids of their variables.

    Shardings that are part of a variable's type are left out. Returns nothing for a trace inside of
    another. Variables that are no arguments (numbers, state) are between those of the arguments.
    """
    if not is_outermost(trace):
        return {}
    by_variable: dict[int, Sharding] = {}
    # One iterator for all arguments: each search goes on after the last match.
    variables = iter(trace.frame.invars)
    for argument in arguments:
        for variable in variables:
            aval: Any = variable.aval
            if getattr(aval, "shape", None) == argument.shape and aval.dtype == argument.dtype:
                if argument.sharding is not None and shardings.traced(aval) is None:
                    by_variable[id(variable)] = argument.sharding
                break
        else:
            return {}
    return by_variable


def is_outermost(trace: object) -> bool:
    """Return whether a trace makes a jaxpr, and is not inside of another."""
    parent = getattr(trace, "parent_trace", None)
    return isinstance(trace, DynamicJaxprTrace) and (
        parent is None or isinstance(parent, core.EvalTrace)
    )


def variable(value: object) -> int:
    """Return the id of a tracer's variable; 0 for another value."""
    atom = getattr(value, "val", None)
    return id(atom) if isinstance(value, core.Tracer) and isinstance(atom, core.Var) else 0


def underlying_variable(value: object) -> Var | None:
    """Return the variable of a value, or `None` if the value is known.

    Under `vmap` or `grad`, this is the variable of the underlying value.
    """
    while isinstance(value, core.Tracer) and not isinstance(value, DynamicJaxprTracer):
        value = getattr(value, "primal", getattr(value, "val", None))
    return cast(Var, value.val) if isinstance(value, DynamicJaxprTracer) else None


def equations(trace: object) -> list[Equation]:
    """Return the equations of the jaxpr under construction of a trace that has not ended."""
    if not isinstance(trace, DynamicJaxprTrace):
        return []
    entries: list[Any] = trace.frame.tracing_eqns  # equations, or weak references to them
    pending = (entry if hasattr(entry, "params") else entry() for entry in entries)
    return [equation for equation in pending if equation is not None]


@contextlib.contextmanager
def new_equations(created: Callable[[object], None]) -> Iterator[None]:
    """Have `created` called with the traceback of each equation that is added to a jaxpr.

    The caller's stack is then that of the code that creates the equation.
    """
    add: Any = JaxprStackFrame.add_eqn

    def add_eqn(frame: object, equation: Any) -> None:
        add(frame, equation)
        created(equation.source_info.traceback)

    # On the class: each trace has a frame of its own.
    with replaced((JaxprStackFrame, "add_eqn", add_eqn)):
        yield


def begins_jaxpr(code: CodeType) -> bool:
    """Return whether code is a function of JAX that makes an inner jaxpr, or transforms one."""
    file = code.co_filename.replace("\\", "/")
    return "/jax/_src/interpreters/" in file and _BEGINS.fullmatch(code.co_name) is not None


_BEGINS = re.compile(r"trace_to_jaxpr\w*|_?(?:linearize|jvp|transpose|remat|lower)_jaxpr\w*")
"""Functions of `partial_eval.py`, `ad.py` and `remat.py`."""


def _loop_frame(skip: int) -> FrameType | None:
    """Return the frame of the `skip`-th enclosing call of `lax.scan` or `lax.while_loop`."""
    calls = (
        frame
        for frame in outwards(sys._getframe(1))
        if frame.f_code.co_name in ("scan", "while_loop")
        and frame.f_code.co_filename.endswith("loops.py")
    )
    return next(itertools.islice(calls, skip, None), None)


def leave_out(path: str, real: Callable[[str], str]) -> None:
    """Exclude frames of files under `path` from the user's frames.

    `jax.debug.breakpoint` passes the tracers in all other frames to its callback.

    Args:
        real: returns the file of a name that code is compiled under, for files that modules
            exclude.
    """
    source_info_util.register_exclusion(path)
    traceback_util.register_exclusion(path)
    include = traceback_util.include_filename
    traceback_util.include_filename = lambda filename: include(real(filename))


def leaked(traced: Traced) -> tuple[Exception, Equation | None] | None:
    """Return JAX's error about the first leaked tracer, and the equation that uses it, if any.

    JAX itself raises an error only when the function runs. `jit` adds an input, before the others,
    for each closed-over value that is a tracer; at the top level that can only be one that escaped
    from a finished trace.
    """
    # Since JAX 0.10. Before, they are the first of the flat arguments.
    captured = getattr(traced, "_consts", None)
    if captured is None:
        captured = getattr(traced, "_args_flat")  # noqa: B009 - unknown to later versions
    opened = open_jaxpr(traced.jaxpr)
    for variable, value in zip(opened.invars[: traced._num_consts], captured, strict=False):
        if isinstance(value, core.Tracer):
            using = (equation for equation in opened.eqns if variable in equation.invars)
            error: Exception = core.escaped_tracer_error(value)  # type: ignore[no-untyped-call]
            return error, next(using, None)
    return None


def is_leaked(value: object) -> bool:
    """Return whether a value is a tracer of a trace that is finished."""
    if not isinstance(value, core.Tracer):
        return False
    trace: object = core.trace_ctx.trace
    while trace is not None and trace is not value._trace:
        trace = getattr(trace, "parent_trace", None)
    return trace is None
