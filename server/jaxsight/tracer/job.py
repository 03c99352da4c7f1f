"""A request while it is answered: what a handler gets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from jaxsight.tracer.calls.inputs import Evaluator, Inputs
from jaxsight.tracer.calls.user_function import UserFunction
from jaxsight.tracer.compat import meshes
from jaxsight.tracer.execution import device_demand
from jaxsight.tracer.failures import UserError
from jaxsight.tracer.isolation import refusals
from jaxsight.tracer.kept_traces import Traces
from jaxsight.tracer.observation.recorder import Recorder
from jaxsight.wire.messages.requests import Trace

Asked = TypeVar("Asked")


@dataclass(frozen=True, slots=True)
class Module:
    """The slice of a module after its execution.

    `trace` has the chunks that were executed: they have other ids than those of the request if a
    text has changed but not its meaning.
    """

    trace: Trace
    namespace: Mapping[str, object]
    recorder: Recorder
    evaluator: Evaluator

    @contextlib.contextmanager
    def inputs(self, function: UserFunction) -> Iterator[Inputs]:
        """Provide the function's inputs, with their mesh as the context's.

        Effects outside of the process are refused in the block, if nobody asked for the call.

        Raises:
            UserError: the inputs are invalid; its stage is `inputs`.
            MoreDevices: they may be valid with more devices.
        """
        with self.recorder.tracing():
            mesh = self.evaluator.mesh(self.trace, self.namespace)
        guard = refusals.refusing() if self.trace.unasked else contextlib.nullcontext()
        with guard, meshes.entered(mesh):
            try:
                with self.recorder.tracing():
                    inputs = self.evaluator.inputs(self.trace, function, self.namespace, mesh)
            except UserError as error:
                device_demand.demand(error, self.trace)
                raise
            yield inputs


@dataclass(frozen=True, slots=True)
class Job(Generic[Asked]):
    """A request, with what its handler needs."""

    request: Asked
    traces: Traces
    announce: Callable[[str, str], None] = lambda stage, detail: None
    """Tells the server which stage begins, with a detail for users."""
    executed: Module | None = None

    def begin(self, stage: str, detail: str = "") -> None:
        """Announce that a stage of the request begins."""
        self.announce(stage, detail)

    @property
    def module(self) -> Module:
        """The executed slice of a request that has one."""
        assert self.executed is not None, f"{self.request} executes no module"
        return self.executed
