"""Trace a function with its inputs, and keep traces for later requests.

The jaxpr is that of `jax.make_jaxpr(f)(*args)`; for a `jax.jit` function it is the body.
This must never run an equation, and keeps only a few traces.
"""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import jax

from jaxsight.interpreters import views
from jaxsight.interpreters.compat import avals
from jaxsight.tracer.compat import config, contexts, jaxprs, leaks, lowering, traces
from jaxsight.tracer.failures import UserError, clean, failure, refusal, span_of
from jaxsight.tracer.function_lookup import find
from jaxsight.tracer.handlers import show as shown
from jaxsight.tracer.handlers.compare import compared, compared_with_values
from jaxsight.tracer.handlers.fingerprint import fingerprint
from jaxsight.tracer.handlers.lower import lowered, stablehlo
from jaxsight.tracer.handlers.outline import outlined
from jaxsight.tracer.handlers.sourcerize import written
from jaxsight.tracer.handlers.transforms import transformed
from jaxsight.tracer.handlers.view import viewed
from jaxsight.tracer.inputs import Evaluator
from jaxsight.tracer.observation import display
from jaxsight.tracer.observation.recorder import CancelledByServer, Recorder
from jaxsight.tracer.observation.variable_names import Naming
from jaxsight.tracer.states import stateful
from jaxsight.tracer.states.stateful import Outcome
from jaxsight.tracer.states.watch import Watch
from jaxsight.wire.messages import tracing as protocol

Settings = tuple[Mapping[str, object], ...]
"""Options of `jax.config`, and those of the thread."""

Stage = Callable[[str, str], None]
"""Called with the stage of the request, and a detail for users."""

_KEPT = 16
"""Maximum number of traces that are kept."""

_LEAVES = 40
"""Maximum number of leaves shown of a parameter, and of the result."""

_WARNINGS = 50

traces.leave_out(str(Path(__file__).resolve().parents[1]), protocol.real_file)


@dataclass(frozen=True, slots=True)
class _Kept:
    """A trace as JAX's `Traced` stage.

    `stage` is compiled; `seen` is shown, without results that only a library's `jit` returns.
    """

    stage: Any
    seen: Any
    outcome: Outcome
    settings: Settings
    """Settings of the trace, as JAX traces functions of its own during lowering."""

    @staticmethod
    def of(stage: Any, outcome: Outcome) -> _Kept:
        seen = lowering.without_first(stage, outcome.markers)
        return _Kept(stage, seen, outcome, _settings())


class Tracing:
    """The traces of the process."""

    def __init__(self) -> None:
        self._evaluator = Evaluator()
        self._kept: OrderedDict[int, _Kept] = OrderedDict()

    def trace(
        self,
        request: protocol.Trace,
        namespace: Mapping[str, Any],
        recorder: Recorder,
        stage: Stage,
    ) -> protocol.Traced:
        """Trace `request.function` of `namespace`; the caller sets `executed` and `modules`.

        Raises:
            UserError: tracing failed; it has the observations until then.
            CancelledByServer: the request was cancelled.
        """
        found = find(namespace, request.function)
        stage("inputs", "")
        begin = time.perf_counter()
        with recorder.tracing():
            inputs = self._evaluator.inputs(request, found, namespace)
        stage("trace", "")
        middle = time.perf_counter()
        outcome = Outcome()
        error: protocol.Failure | None = None
        reached: list[jaxprs.Reached] = []
        traced: Any = None
        with recorder.tracing() as sites, _warnings(inputs.warnings):
            try:
                traced, outcome = stateful.traced(found, inputs)
            except CancelledByServer:
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                # Raised again below, because the exception's frames hold tracers.
                error = failure(raised, "trace")
                reached = recorder.unfinished()
        if error is None and (escaped := leaks.leaked(traced)) is not None:
            error = _escaped(request, *escaped)
        if error is not None:
            raise UserError(error, recorder.collect(request.chunks, sites, reached))
        end = time.perf_counter()
        kept = _Kept.of(traced, outcome)
        jaxpr = kept.seen.jaxpr
        equations = jaxprs.count(jaxpr)
        folded = shown.folded(jaxpr, equations)
        observed = recorder.collect(request.chunks, sites, jaxprs.reached(jaxpr))
        self._kept[request.id] = kept
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return protocol.Traced(
            id=request.id,
            parameters=tuple(
                (name, clean(display.text(value, _LEAVES))) for name, value in inputs.named.items()
            ),
            outputs=clean(_outputs(kept)),
            jaxpr=folded.text,
            folded=folded.folded,
            equations=equations,
            constants=tuple(map(_constant, jaxprs.constants(jaxpr))),
            seen=observed.seen,
            observations=observed.observations,
            warnings=tuple(dict.fromkeys(inputs.warnings)),
            views=views.names(),
            updates=outcome.updates,
            left_out=outcome.left_out,
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
        """Write `request.function`, or a transformation of it, as source; the caller sets `reused`.

        Raises:
            UserError: tracing failed, or, at stage `sourcerize`, there is no source.
            CancelledByServer: the request was cancelled.
        """
        found = find(namespace, request.function)
        stage("inputs", "")
        with recorder.tracing():
            inputs = self._evaluator.inputs(request, found, namespace)
        stage("sourcerize", "")
        watch = Watch(found.call, inputs.named)
        with recorder.tracing() as sites, _warnings(inputs.warnings), watch:
            try:
                state = stateful.updating(found, inputs)
                naming = recorder.naming = Naming(recorder.site, request.chunks, request.file)
                call = transformed(found, inputs, request.function, wanted.transform, state)
                return written(request, call, wanted, naming)
            except (CancelledByServer, UserError):
                raise
            except BaseException as raised:  # noqa: BLE001 - user code, `SystemExit` included
                error = failure(raised, "trace")
            finally:
                recorder.naming = None
        raise UserError(error, recorder.collect(request.chunks, sites))

    def stored(self, trace: int) -> Any:
        """Return an earlier trace as JAX's `Traced` stage.

        Raises:
            UserError: it is no longer kept.
        """
        return self._stored(trace).seen

    def _stored(self, trace: int) -> _Kept:
        kept = self._kept.get(trace)
        if kept is None:
            raise refusal("find", f"trace {trace} is no longer kept", type="LookupError")
        self._kept.move_to_end(trace)
        return kept

    def show(self, request: protocol.Show) -> protocol.Shown:
        """Return the whole jaxpr of an earlier trace, its StableHLO, or a jaxpr interpreter's view.

        Raises:
            UserError: it is no longer kept, or the view failed.
        """
        kept = self._stored(request.trace)
        match request.what:
            case protocol.JAXPR:
                return shown.whole(request, kept.seen.jaxpr)
            case protocol.STABLEHLO:
                with _under(kept.settings):
                    return stablehlo(request, kept.stage)
            case protocol.PROGRAM:
                return protocol.Shown(request.id, fingerprint(kept.seen.jaxpr))
            case _:
                return viewed(request, kept.seen.jaxpr)

    def lower(self, request: protocol.Lower) -> protocol.Lowered:
        """Lower an earlier trace to StableHLO.

        Raises:
            UserError: it is no longer kept, or cannot be lowered for the platform.
        """
        kept = self._stored(request.trace)
        with _under(kept.settings):
            return lowered(request, kept.stage, kept.outcome.markers)

    def compare(self, request: protocol.Compare) -> protocol.Compared:
        """Compare the results of two earlier traces.

        Raises:
            UserError: one is no longer kept.
        """
        return compared(request, self.stored(request.trace), self.stored(request.other))

    def compare_with_values(
        self,
        request: protocol.Compare,
        run: protocol.Trace,
        namespace: Mapping[str, Any],
        recorder: Recorder,
    ) -> protocol.Compared:
        """Compare the function of `run`, called with values, with an earlier trace.

        Raises:
            UserError: the trace is no longer kept, or `run` is invalid.
        """
        after = self._stored(request.other)
        found = find(namespace, run.function)
        with recorder.tracing():
            inputs = self._evaluator.inputs(run, found, namespace)
        call = stateful.with_values(found, inputs)
        return compared_with_values(request, call, after.seen, after.outcome)

    def outline(self, request: protocol.Outline) -> protocol.Outlined:
        """Return an earlier trace as plain data.

        Raises:
            UserError: it is no longer kept.
        """
        return outlined(request, self.stored(request.trace))


def _settings() -> Settings:
    return config.values(), contexts.values()


@contextlib.contextmanager
def _under(settings: Settings) -> Iterator[None]:
    """Restore JAX's settings within the context."""
    before = _settings()
    _change(before, settings)
    try:
        yield
    finally:
        _change(settings, before)


def _change(now: Settings, wanted: Settings) -> None:
    for write, old, new in zip((config.update, contexts.enter), now, wanted, strict=True):
        for name, value in new.items():
            if old[name] is not value and old[name] != value:
                write(name, value)


def _escaped(request: protocol.Trace, error: Exception, equation: Any) -> protocol.Failure:
    """Return the failure of a leaked tracer, at the expression that uses it."""
    told = failure(error, "trace")
    span = shown.span(equation) if equation is not None else None
    if span is None:
        return told
    return replace(told, frames=(protocol.Frame(request.function, request.file, span.line, span),))


def _outputs(kept: _Kept) -> str:
    """Return the text of the function's result, without its updates."""
    outcome = kept.outcome
    variables = jaxprs.open_jaxpr(kept.seen.jaxpr).outvars
    arrays = (var.aval for var in variables[outcome.start : outcome.start + outcome.count])
    structure = outcome.structure
    leaves = [
        display.Shown(outcome.kept[index]) if index in outcome.kept else next(arrays)
        for index in range(structure.num_leaves)
    ]
    try:
        result = jax.tree_util.tree_unflatten(structure, leaves)
    except Exception:  # noqa: BLE001 - user code
        # A class may check its leaves on construction; show the leaves alone.
        result = tuple(leaves)
    return display.text(result, _LEAVES)


def _constant(value: Any) -> tuple[str, int]:
    aval = avals.of(value)
    return avals.text(aval), avals.size(aval)


@contextlib.contextmanager
def _warnings(into: list[protocol.Warned]) -> Iterator[None]:
    """Collect Python's warnings, each with the innermost expression of a chunk that caused it."""

    def show(message: Any, category: type, *_: Any, **__: Any) -> None:
        if len(into) < _WARNINGS:
            span = innermost_span(sys._getframe(1))
            into.append(protocol.Warned(category.__name__, clean(str(message)), span))

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def innermost_span(frame: FrameType | None) -> protocol.Span | None:
    """Return the current place of the innermost frame in a chunk, of a frame and its callers."""
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
