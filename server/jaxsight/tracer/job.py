"""A request while it is answered: what a handler gets, and the few traces that are kept for it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import jax
import numpy as np
from jax.stages import Traced

from jaxsight.files.texts import Version
from jaxsight.lru import Recent
from jaxsight.meshes.compat import meshes
from jaxsight.tracer.calls import stateful_traces
from jaxsight.tracer.calls.inputs import Evaluator, Inputs
from jaxsight.tracer.calls.leaves import is_number
from jaxsight.tracer.calls.parameters import named
from jaxsight.tracer.calls.stateful_call import Outcome
from jaxsight.tracer.calls.user_function import UserFunction, as_called, find
from jaxsight.tracer.compat import lowering, traces
from jaxsight.tracer.dry_runs.captured import nested
from jaxsight.tracer.dry_runs.command_lines import default_flags
from jaxsight.tracer.dry_runs.noted_calls import ExecutedStatements
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.failures import UserError, failure, refusal
from jaxsight.tracer.isolation import process_state, refusals
from jaxsight.tracer.isolation.process_state import SETTINGS, State
from jaxsight.tracer.observation.observed_values import Observed
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.tracer.states import inside
from jaxsight.wire.messages.inputs import PROGRAM, DryCall, EntryPoint, InputCall
from jaxsight.wire.messages.requests import Trace

if TYPE_CHECKING:
    from jaxsight.tracer.dry_runs.programs import DryRunResult, DryRuns

_DEFINES = re.compile(r"\s*(?:async\s+def|def|class)\b|\s*@")
Asked = TypeVar("Asked")
Answer = TypeVar("Answer")

_MOST_TRACES = 16
"""Traces that are kept, with their jaxprs; a request about another one traces again."""


@dataclass(frozen=True, slots=True)
class ExecutedModule:
    """The slice of a module after its execution.

    `trace` has the chunks that were executed: they have other ids than those of the request if a
    text has changed but not its meaning.
    """

    trace: Trace
    namespace: dict[str, object]
    recorder: Recorder
    evaluator: Evaluator
    statements: Callable[[], ExecutedStatements] | None = None
    """Returns what its statements did."""
    dry_runs: Callable[[], DryRuns] | None = None
    """Returns the dry runs of the process; there are none where a file is imported as a whole."""
    files: dict[str, Version] = field(default_factory=dict)
    """The files that dry runs for the request read, with their versions."""

    def dry_run(self, entry: EntryPoint, patience: float) -> DryRunResult:
        """Return what a program calls the functions of the file with."""
        if self.dry_runs is None or self.statements is None:
            raise refusal("inputs", "programs are not run dry here")
        about = self.trace, self.namespace, self.recorder, entry, patience, self.statements()
        ran = self.dry_runs().ran(*about, self._trace_given)
        self.files.update(ran.files)
        return ran

    def _trace_given(self, given: InputCall, file: str, namespace: dict[str, object]) -> None:
        """Trace a function of a file with its example inputs, for what it calls.

        Raises:
            UserError: it cannot be traced.
        """
        asked = {each.name: getattr(given, each.name) for each in fields(given)}
        trace = replace(self.trace, file=file, dry_call=None, **asked)
        # A value of a dry run is none to remember.
        module = replace(self, trace=trace, namespace=namespace, evaluator=Evaluator())

        def traced() -> None:
            with module.called() as (function, inputs):
                try:
                    stateful_traces.traced(function, inputs)
                except Exception as error:
                    raise UserError(failure(error, "trace")) from error

        stateful_traces.with_axes(traced)

    @contextlib.contextmanager
    def called(self) -> Iterator[tuple[UserFunction, Inputs]]:
        """Provide the function of the request and its inputs, with their mesh as the context's.

        Effects outside of the process are refused in the block, if nobody asked for the call.

        Raises:
            UserError: there is no such function, or the inputs are invalid; its stage is `find` or
                `inputs`.
            MoreDevices: they may be valid with more devices.
        """
        if self.trace.dry_call is None:
            function, known = find(self.namespace, self.trace.function), None
        else:
            function, known = self._called_dry(self.trace.dry_call)
        with default_flags(), self._inputs(function, known) as inputs:
            first = inputs.args[0] if inputs.args and function.owner is not None else None
            try:
                if inside.is_linen(first):
                    # A method of a Linen module is a function of the module's variables.
                    method = self.trace.function.rpartition(".")[2]
                    applied = inside.applied_method(first, method, inputs.args[1:], inputs.kwargs)
                elif inside.runs(self._unit):
                    applied = inside.applied(self._unit, function.call, inputs.args, inputs.kwargs)
                else:
                    applied = None
            except Exception as error:
                raise UserError(failure(error, "trace")) from error
            if applied is not None:
                function, args, kwargs = UserFunction(applied[0]), *applied[1:]
                inputs = Inputs(args, kwargs, named(function, args, kwargs), inputs.warnings)
            yield function, inputs

    @property
    def _unit(self) -> inside.Unit:
        return self.trace.file, self.trace.function

    def values(self, function: UserFunction) -> dict[str, object]:
        """Return the values that example inputs have, by JAX's names of them (`params['w']`).

        There are none of arguments that only a type is known of, nor of those of a dry run.
        """
        # A new one: the evaluator of the process caches abstract values.
        evaluator = Evaluator(concrete=True, keeps_numbers=True)
        try:
            with self.recorder.tracing():
                inputs = evaluator.inputs(self.trace, function, self.namespace)
        except UserError:
            return {}
        return {
            f"{name}{jax.tree_util.keystr(path)}": leaf
            for name, value in inputs.named.items()
            for path, leaf in jax.tree_util.tree_flatten_with_path(value)[0]
            if isinstance(leaf, jax.Array | np.ndarray | np.generic) or is_number(leaf)
        }

    def observed_dry(self, wanted: DryCall) -> Observed:
        """Return what was observed of the function or its class, and of those in it, in a dry run.

        Without a function, it is that of statements which define none.
        """
        observed = self.dry_run(wanted.entry, self.trace.patience * 2).observed
        name = self.trace.function.partition(".")[0]
        chunks = (*self.trace.chunks, *self.trace.skipped)
        own = {c.id for c in chunks if (name in c.binds if name else not _DEFINES.match(c.text))}
        inside = tuple(each for each in observed.observations if each.span.chunk in own)
        return replace(observed, observations=inside)

    def _called_dry(self, wanted: DryCall) -> tuple[UserFunction, dict[str, object]]:
        """Return the function that a dry run calls, and its known arguments."""
        name = self.trace.function
        calls = self.dry_run(wanted.entry, self.trace.patience * 2).calls.get(name, ())
        if wanted.number >= len(calls):
            raise refusal("inputs", f"{name} was not called in the dry run")
        call = calls[wanted.number]
        if "<locals>" in name or name.startswith(PROGRAM):
            return nested(call)
        return as_called(find(self.namespace, name)), call.values()

    @contextlib.contextmanager
    def _inputs(
        self, function: UserFunction, known: Mapping[str, object] | None
    ) -> Iterator[Inputs]:
        with self.recorder.tracing():
            mesh = self.evaluator.mesh(self.trace, self.namespace)
        guard = refusals.refusing() if self.trace.unasked else contextlib.nullcontext()
        with guard, meshes.entered(mesh):
            try:
                with self.recorder.tracing():
                    make = partial(
                        self.evaluator.inputs, self.trace, function, self.namespace, mesh, known
                    )
                    inputs = inside.make_inputs(self._unit, make)
            except UserError as error:
                device_demand.demand(error, self.trace)
                raise
            yield inputs


@dataclass(frozen=True, slots=True)
class JaxTrace:
    """A trace as JAX's `Traced` stage.

    `stage` is compiled; `shown` is for users, without results that only a library's `jit` returns.
    """

    stage: Traced
    shown: Traced
    outcome: Outcome
    settings: State
    """Settings of the trace, as JAX traces functions of its own during lowering."""
    axes: tuple[str, ...]
    """The named axes of the program around the function, which is not traced."""
    values: Mapping[str, object]
    """Values of flat arguments by JAX's names of them (`params['w']`), if they were asked for."""

    @staticmethod
    def of(stage: Traced, outcome: Outcome, values: Mapping[str, object]) -> JaxTrace:
        """Keep a trace with the current settings, and with values of its arguments."""
        shown = lowering.without_first(stage, outcome.markers)
        return JaxTrace(
            stage, shown, outcome, process_state.capture(SETTINGS), traces.named_axes(), values
        )


class Traces(Recent[int, JaxTrace]):
    """The last traces of the process, by the `id` of their requests."""

    def __init__(self) -> None:
        super().__init__(_MOST_TRACES)

    def of(self, id: int) -> JaxTrace:
        """Return an earlier trace.

        Raises:
            UserError: it is no longer kept.
        """
        trace = self.get(id)
        if trace is None:
            raise refusal("find", f"trace {id} is no longer kept", type="LookupError")
        return trace


@contextlib.contextmanager
def under(settings: State) -> Iterator[None]:
    """Restore JAX's settings of a trace within the context."""
    before = process_state.capture(SETTINGS)
    process_state.restore(settings, SETTINGS)
    try:
        yield
    finally:
        process_state.restore(before, SETTINGS)


@dataclass(frozen=True, slots=True)
class Job(Generic[Asked]):
    """A request, with what its handler needs."""

    request: Asked
    traces: Traces
    announce: Callable[[str, str], None] = lambda stage, detail: None
    """Tells the server which stage begins, with a detail for users."""
    executed: ExecutedModule | None = None

    def begin(self, stage: str, detail: str = "") -> None:
        """Announce that a stage of the request begins."""
        self.announce(stage, detail)

    def answer(self, by: Callable[..., Answer]) -> Answer:
        """Return a handler's answer, with the function inside of the context that it needs.

        Raises:
            UserError: that of the handler.
        """
        try:
            return by(self)
        except UserError as error:
            trace = self.module.trace
            # The error shows that the function needs a library's context: run it inside.
            if not inside.newly((trace.file, trace.function), error.failure):
                raise
            return by(self)

    @property
    def module(self) -> ExecutedModule:
        """The executed slice of a request that has one."""
        assert self.executed is not None, f"{self.request} executes no module"
        return self.executed
