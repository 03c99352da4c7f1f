"""Traces a found function with its inputs, and keeps the jaxprs for later questions.

The jaxpr is that of `jax.make_jaxpr(f)(*args)`; of a `jax.jit` function it is the body. Must never run an equation, and holds
no more than a few traces.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from jaxsight.interpreters import views
from jaxsight.interpreters.compat import avals
from jaxsight.tracer import display, protocol, shown
from jaxsight.tracer.compared import compared, compared_with_values
from jaxsight.tracer.compat import jaxprs, leaks, traces
from jaxsight.tracer.failures import UserError, clean, failure, refusal, span_of
from jaxsight.tracer.find import Found, find
from jaxsight.tracer.inputs import Evaluator, Inputs, is_array
from jaxsight.tracer.lowered import lowered, stablehlo
from jaxsight.tracer.naming import Naming
from jaxsight.tracer.outlined import outlined
from jaxsight.tracer.recorder import CancelledByServer, Recorder
from jaxsight.tracer.sourcerized import written
from jaxsight.tracer.transforms import transformed
from jaxsight.tracer.viewed import viewed

Stage = Callable[[str, str], None]
"""Told at which stage the request is, and a detail for people."""

_KEPT = 16
"""Traces that can still be shown."""

_LEAVES = 40
"""Leaves shown of one parameter, and of the result."""

_WARNINGS = 50

traces.leave_out(str(Path(__file__).resolve().parent))


@dataclass(slots=True)
class _Outputs:
    """What the traced function returned besides arrays: the structure, and by leaf what JAX does not carry."""

    structure: Any = None
    kept: dict[int, Any] = field(default_factory=dict)


class Tracing:
    """One per process."""

    def __init__(self) -> None:
        self._evaluator = Evaluator()
        self._traced: OrderedDict[int, Any] = OrderedDict()

    def trace(
        self,
        request: protocol.Trace,
        namespace: Mapping[str, Any],
        recorder: Recorder,
        stage: Stage,
    ) -> protocol.Traced:
        """Traces `request.function` as `namespace` has it. `executed` and `modules` are left to the caller.

        Raises `UserError` (with what was observed until then) and `CancelledByServer`.
        """
        found = find(namespace, request.function)
        stage("inputs", "")
        begin = time.perf_counter()
        with recorder.tracing():
            inputs = self._evaluator.inputs(request, found, namespace)
        stage("trace", "")
        middle = time.perf_counter()
        outputs = _Outputs()
        error: protocol.Failure | None = None
        reached: list[jaxprs.Reached] = []
        traced: Any = None
        with recorder.tracing() as sites, _warnings(inputs.warnings):
            try:
                traced = _traced(found, inputs, outputs)
            except CancelledByServer:
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                # Raised again outside: the exception's frames hold tracers.
                error = failure(raised, "trace")
                reached = recorder.unfinished()
        if error is None and (escaped := leaks.leaked(traced)) is not None:
            error = _escaped(request, *escaped)
        if error is not None:
            raise UserError(error, recorder.collect(request.chunks, sites, reached))
        end = time.perf_counter()
        jaxpr = traced.jaxpr
        equations = jaxprs.count(jaxpr)
        folded = shown.folded(jaxpr, equations)
        observed = recorder.collect(request.chunks, sites, jaxprs.reached(jaxpr))
        self._traced[request.id] = traced
        if len(self._traced) > _KEPT:
            self._traced.popitem(last=False)
        return protocol.Traced(
            id=request.id,
            parameters=tuple(
                (name, clean(display.text(value, _LEAVES))) for name, value in inputs.named.items()
            ),
            outputs=clean(_outputs(found, traced, outputs)),
            jaxpr=folded.text,
            folded=folded.folded,
            equations=equations,
            constants=tuple(map(_constant, jaxprs.constants(jaxpr))),
            seen=observed.seen,
            observations=observed.observations,
            warnings=tuple(dict.fromkeys(inputs.warnings)),
            views=views.names(),
            seconds=(
                ("inputs", middle - begin),
                ("trace", end - middle),
                ("describe", time.perf_counter() - end),
            ),
        )

    def sourcerize(
        self,
        request: protocol.Trace,
        wanted: protocol.Sourcerize,
        namespace: Mapping[str, Any],
        recorder: Recorder,
        stage: Stage,
    ) -> protocol.Shown:
        """Writes `request.function`, or a transformation of it, as source. `reused` is left to the caller.

        Raises `UserError`, of stage `sourcerize` when it traces and yet has no source, and `CancelledByServer`.
        """
        found = find(namespace, request.function)
        stage("inputs", "")
        with recorder.tracing():
            inputs = self._evaluator.inputs(request, found, namespace)
        stage("sourcerize", "")
        with recorder.tracing() as sites, _warnings(inputs.warnings):
            naming = recorder.naming = Naming(recorder.site, request.chunks, request.file)
            try:
                call = transformed(found, inputs, request.function, wanted.transform)
                return written(request, call, wanted, naming)
            except (CancelledByServer, UserError):
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                error = failure(raised, "trace")
            finally:
                recorder.naming = None
        raise UserError(error, recorder.collect(request.chunks, sites))

    def stored(self, trace: int) -> Any:
        """An earlier trace, as JAX's `Traced` stage. Raises `UserError` when it is no longer kept."""
        traced = self._traced.get(trace)
        if traced is None:
            raise refusal("find", f"trace {trace} is no longer kept", type="LookupError")
        self._traced.move_to_end(trace)
        return traced

    def show(self, request: protocol.Show) -> protocol.Shown:
        """The whole jaxpr of an earlier trace, its StableHLO, or what an interpreter makes of it. Raises `UserError` when it is no longer kept."""
        traced = self.stored(request.trace)
        match request.what:
            case protocol.JAXPR:
                return shown.whole(request, traced.jaxpr)
            case protocol.STABLEHLO:
                return stablehlo(request, traced)
            case _:
                return viewed(request, traced.jaxpr)

    def lower(self, request: protocol.Lower) -> protocol.Lowered:
        """An earlier trace in StableHLO. Raises `UserError` when it is no longer kept, or cannot be lowered for the platform."""
        return lowered(request, self.stored(request.trace))

    def compare(self, request: protocol.Compare) -> protocol.Compared:
        """Whether two earlier traces compute the same. Raises `UserError` when one is no longer kept."""
        return compared(request, self.stored(request.trace), self.stored(request.other))

    def compare_with_values(
        self,
        request: protocol.Compare,
        run: protocol.Trace,
        namespace: Mapping[str, Any],
        recorder: Recorder,
    ) -> protocol.Compared:
        """Whether what `run` asks for, called with values, gives what an earlier trace computes. Raises `UserError`."""
        after = self.stored(request.other)
        found = find(namespace, run.function)
        with recorder.tracing():
            inputs = self._evaluator.inputs(run, found, namespace)
        call = getattr(found.call, "__wrapped__", found.call) if found.jitted else found.call
        return compared_with_values(request, call, inputs, after)

    def outline(self, request: protocol.Outline) -> protocol.Outlined:
        """An earlier trace as plain data. Raises `UserError` when it is no longer kept."""
        return outlined(request, self.stored(request.trace))


def _traced(found: Found, inputs: Inputs, outputs: _Outputs) -> Any:
    """JAX's `Traced` stage of the call, from which it can be lowered too."""
    if found.jitted:
        return found.call.trace(*inputs.args, **inputs.kwargs)  # type: ignore[attr-defined]
    leaves, structure = jax.tree_util.tree_flatten((inputs.args, inputs.kwargs))
    static = {index: leaf for index, leaf in enumerate(leaves) if not is_array(leaf)}
    count = len(leaves)

    @functools.wraps(found.call, updated=())
    def call(*args: Any, **kwargs: Any) -> list[Any]:
        if static:
            arrays = iter(jax.tree_util.tree_leaves((args, kwargs)))
            whole = [static[index] if index in static else next(arrays) for index in range(count)]
            args, kwargs = jax.tree_util.tree_unflatten(structure, whole)
        given, outputs.structure = jax.tree_util.tree_flatten(found.call(*args, **kwargs))
        outputs.kept.clear()
        results = []
        for index, leaf in enumerate(given):
            if is_array(leaf) or isinstance(leaf, bool | int | float | complex):
                results.append(leaf)
            else:
                outputs.kept[index] = display.text(leaf)
        return results

    if static:
        # Nothing stands where a static leaf was, so that JAX names the arrays as in the user's call.
        given = [None if index in static else leaf for index, leaf in enumerate(leaves)]
        args, kwargs = jax.tree_util.tree_unflatten(structure, given)
        return jax.jit(call).trace(*args, **kwargs)
    return jax.jit(call).trace(*inputs.args, **inputs.kwargs)


def _escaped(request: protocol.Trace, error: Exception, equation: Any) -> protocol.Failure:
    """The failure of a tracer that another trace left behind, at the expression that uses it."""
    told = failure(error, "trace")
    span = shown.span(equation) if equation is not None else None
    if span is None:
        return told
    return replace(told, frames=(protocol.Frame(request.function, request.file, span.line, span),))


def _outputs(found: Found, traced: Any, outputs: _Outputs) -> str:
    given = [var.aval for var in jaxprs.open_jaxpr(traced.jaxpr).outvars]
    structure: Any = outputs.structure
    if found.jitted:
        structure = jax.tree_util.tree_structure(traced.out_info)
    arrays = iter(given)
    leaves = [
        display.Shown(outputs.kept[index]) if index in outputs.kept else next(arrays)
        for index in range(structure.num_leaves)
    ]
    try:
        result = jax.tree_util.tree_unflatten(structure, leaves)
    except Exception:  # noqa: BLE001 - user code
        # A class that checks its leaves when it is made again; the leaves alone tell enough.
        result = tuple(leaves)
    return display.text(result, _LEAVES)


def _constant(value: Any) -> tuple[str, int]:
    aval = avals.of(value)
    return avals.text(aval), avals.size(aval)


@contextlib.contextmanager
def _warnings(into: list[protocol.Warned]) -> Iterator[None]:
    """Collects Python's warnings, each with the innermost expression of a chunk that it came from."""

    def show(message: Any, category: type, *_: Any, **__: Any) -> None:
        if len(into) < _WARNINGS:
            span = innermost_span(sys._getframe(1))
            into.append(protocol.Warned(category.__name__, clean(str(message)), span))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def innermost_span(frame: FrameType | None) -> protocol.Span | None:
    """Where the innermost of a frame and its callers that lies in a chunk stands at the moment."""
    while frame is not None:
        code = frame.f_code
        if "§" in code.co_filename:
            position = list(code.co_positions())[frame.f_lasti // 2]
            line, end, column, end_column = (part or 0 for part in position)
            span = span_of(code.co_filename, line, column, end, end_column)
            if span is not None:
                return span
        frame = frame.f_back
    return None
