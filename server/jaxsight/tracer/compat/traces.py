"""What JAX is doing while user code runs: the stack of traces, from the innermost outwards.

Holds for JAX 0.8 to 0.12.

Private API used: `core.trace_ctx`, `Trace.parent_trace`, `DynamicJaxprTrace.frame` (`debug_info`,
`tracing_eqns`), `BatchTrace.axis_data`, `LinearizeTrace.is_vjp` (0.10 on), the local `length` of
`lax.scan`, exclusions of `source_info_util` and `traceback_util`,
`traceback_util.include_filename`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from jax._src import core, source_info_util, traceback_util
from jax._src.interpreters.ad import JVPTrace, LinearizeTrace
from jax._src.interpreters.batching import BatchTrace, BatchTracer
from jax._src.interpreters.partial_eval import DynamicJaxprTrace

_PLAIN = {
    "checkpoint / remat": "checkpoint",
    "cond": "cond branch",
    "fori_loop": "fori_loop body",
    "scan": "scan body",
    "while_body": "while body",
    "while_cond": "while cond",
}

_LOOPS = frozenset({"scan", "fori_loop", "while_body", "while_cond"})


def stage_text(traced_for: str, length: Any = None) -> str:
    """What people call a jaxpr that JAX traces for this; loops with how often they run, where that
    is known.
    """
    text = _PLAIN.get(traced_for, traced_for)
    return f"{text} (length {length})" if isinstance(length, int) else text


@dataclass(frozen=True, slots=True)
class Staged:
    """A jaxpr as one can find it again: what it is traced for, and of which function.

    The function is JAX's `name at file:line`.
    """

    traced_for: str
    source: str


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of a loop's body: JAX traces it again, later in the same call, when the carry's weak
    types change.
    """

    loop: int
    staged: Staged
    at: int


@dataclass(frozen=True, slots=True)
class Situation:
    """Where user code is running.

    `inside` is for people, outermost first; its last `own` entries lie within the innermost jaxpr
    under construction. `staged` is the innermost jaxpr under construction, `inputs` the avals of
    its inputs. `passes` are those of the loops around, innermost first. `mapped` are the vmaps that
    values here may be part of.
    """

    inside: tuple[str, ...]
    own: int
    staged: Staged | None
    inputs: tuple[Any, ...]
    passes: tuple[Pass, ...]
    mapped: tuple[Any, ...]


def current() -> Any:
    """The trace that the next operation goes to; `None` while JAX 0.12 evaluates a rule of a
    primitive abstractly.
    """
    return core.trace_ctx.trace


def reference(trace: Any) -> Any:
    """A weak reference: holding a trace would keep its tracers alive."""
    return trace._weakref


def situation(trace: Any) -> Situation:
    """Describes `trace`, which must be the current one. The outermost jit goes without saying."""
    inside: list[str] = []
    own = 0
    staged: Staged | None = None
    inputs: tuple[Any, ...] = ()
    loops = 0
    passes: list[Pass] = []
    mapped: list[Any] = []
    while trace is not None and not isinstance(trace, core.EvalTrace):
        match trace:
            case DynamicJaxprTrace():
                info = trace.frame.debug_info
                traced_for = str(info.traced_for) if info is not None else "jaxpr"
                here = Staged(traced_for, str(info.func_src_info) if info is not None else "")
                if staged is None:
                    staged, inputs = here, tuple(var.aval for var in trace.frame.invars)
                    own = len(inside)
                length = None
                if traced_for in _LOOPS and (frame := _loop_frame(loops)) is not None:
                    loops += 1
                    passes.append(Pass(id(frame), here, frame.f_lasti))
                    length = frame.f_locals.get("length")
                inside.append(stage_text(traced_for, length))
            case BatchTrace():
                axis = trace.axis_data
                named = f" (axis {axis.name!r})" if isinstance(axis.name, str) else ""
                inside.append(f"vmap over {axis.size}{named}")
                if staged is None:
                    mapped.append(trace)
            case JVPTrace():
                inside.append("jvp")
            case LinearizeTrace():
                inside.append("grad" if getattr(trace, "is_vjp", True) else "linearize")
            case _:
                inside.append(type(trace).__name__.removesuffix("Trace"))
        trace = getattr(trace, "parent_trace", None)
    if inside and inside[-1] == "jit":
        inside.pop()
    return Situation(tuple(reversed(inside)), own, staged, inputs, tuple(passes), tuple(mapped))


def equations(trace: Any) -> list[Any]:
    """What a trace that has not ended holds so far: equations of the jaxpr that it was to
    become.
    """
    if not isinstance(trace, DynamicJaxprTrace):
        return []
    held = (each if hasattr(each, "params") else each() for each in trace.frame.tracing_eqns)
    return [equation for equation in held if equation is not None]


def is_mapped(value: Any, trace: Any) -> bool:
    """Whether `value` differs along the axis of the vmap `trace` (constants inside a vmap do
    not).
    """
    while isinstance(value, core.Tracer):
        if isinstance(value, BatchTracer) and value._trace is trace:
            return value.batch_dim is not None
        value = getattr(value, "primal", getattr(value, "val", None))
    return False


def _loop_frame(skip: int) -> FrameType | None:
    """The frame of the `skip`-th call of `lax.scan` or `lax.while_loop` around, from inside."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name in ("scan", "while_loop") and code.co_filename.endswith("loops.py"):
            if skip == 0:
                return frame
            skip -= 1
        frame = frame.f_back
    return None


def leave_out(path: str, real: Callable[[str], str]) -> None:
    """Tell JAX that frames of files under `path` are none of the user's.

    `jax.debug.breakpoint` hands the tracers in all other frames to its callback.

    Args:
        real: gives the file for a name that code is compiled under, for files that modules exclude.
    """
    source_info_util.register_exclusion(path)
    traceback_util.register_exclusion(path)
    include = traceback_util.include_filename
    traceback_util.include_filename = lambda filename: include(real(filename))
