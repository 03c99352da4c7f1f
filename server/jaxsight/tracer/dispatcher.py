"""Answer requests in order, and restore the process between them.

All results of user code, unless it ends the process, become answers.
An internal error becomes an answer too (`Failed` at stage `internal`), with the traceback on the
output.
"""

from __future__ import annotations

import contextvars
import gc
import importlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from weakref import WeakKeyDictionary, ref

import jax

from jaxsight.interpreters import views
from jaxsight.tracer.failures import UserError, failure
from jaxsight.tracer.handlers.trace import Tracing
from jaxsight.tracer.isolation import reads
from jaxsight.tracer.isolation.baseline import Baseline
from jaxsight.tracer.isolation.imports import Imports
from jaxsight.tracer.isolation.leftovers import Leftovers, Spoilt
from jaxsight.tracer.isolation.patches import Patches
from jaxsight.tracer.isolation.reads import Reads
from jaxsight.tracer.main import Line
from jaxsight.tracer.namespaces import World, Worlds
from jaxsight.tracer.observation.recorder import CancelledByServer, Observed
from jaxsight.wire.messages.tracing import (
    Cancelled,
    Compare,
    Failed,
    Failure,
    FromTracer,
    Lower,
    Outline,
    Overlay,
    Reused,
    Show,
    Shown,
    Spoiled,
    Stage,
    Trace,
    Traced,
)

logger = logging.getLogger(__name__)

_clear_caches: Callable[[], None] = jax.clear_caches

HOUSEKEEPING = 128
"""Number of edits after which JAX's caches are cleared.

They keep classes and functions of earlier texts alive (33 KiB for an edited class that is passed to
a jitted helper); clearing them takes about 20 ms, and slows the next trace by as much.
"""

TRACES = 64
"""Maximum number of traces whose world is remembered, which is more than are kept."""

About = TypeVar("About", Show, Lower, Outline, Compare)
Answered = TypeVar("Answered", Show, Lower, Outline, Compare, Trace)


class Tracer:
    """The state of the process across requests."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._imports = Imports()
        self._worlds = Worlds(self._imports)
        self._tracing = Tracing()
        self._leftovers = Leftovers()
        self._traced_in: dict[int, ref[World]] = {}
        """The worlds of traces that requests may still refer to, by id."""
        self._reads: WeakKeyDictionary[World, Reads] = WeakKeyDictionary()
        """Files that each file's statements have read."""
        self._edits = 0
        reads.watch()
        if line.requests.empty():
            _warm_up()
            gc.collect()
        self._patches = Patches(self._imports, self._leftovers)
        gc.freeze()  # JAX's objects stay alive, so collections need not scan them
        gc.enable()
        self._baseline = Baseline()

    def run(self) -> None:
        """Answer requests until the process exits, because the server has closed the pipe."""
        while True:
            match self._line.requests.get():
                case Overlay(path, text):
                    self._imports.texts.put(path, text)
                case Show() as request:
                    self._line.send(self._about(self._show, request))
                case Lower() as request:
                    self._line.send(self._about(self._lower, request))
                case Outline() as request:
                    self._line.send(self._about(self._outline, request))
                case Compare(run=Trace(file=file)) as request:
                    self._line.send(self._apart(self._compare, request, file))
                case Compare() as request:
                    self._line.send(self._about(self._compare, request))
                case Trace() as request:
                    self._line.send(self._apart(self._trace, request, request.file))
                    self._keep_house()

    def _about(self, answer: Callable[[About], FromTracer], request: About) -> FromTracer:
        """Answer a request about a trace, with its file's changes of libraries applied."""
        known = self._traced_in.get(request.trace)
        world = known() if known is not None else None
        self._patches.enter(world)
        try:
            return self._apart(answer, request, world.file if world is not None else "")
        finally:
            self._patches.leave(world)

    def _apart(
        self, answer: Callable[[Answered], FromTracer], request: Answered, file: str
    ) -> FromTracer:
        """Answer a request in a context of its own, which discards context variables that it sets.

        If it needs a fresh process, the answer is `Spoiled`.
        """
        try:
            self._leftovers.begin(file)
            return contextvars.copy_context().run(answer, request)
        except Spoilt as spoilt:
            return Spoiled(request.id, str(spoilt))

    def _restore(self, request: Trace | None = None, world: World | None = None) -> None:
        """Restore the process after a request, and record changes that cannot be undone."""
        lost = self._baseline.restore()
        if request is not None and world is not None:
            lost += self._patches.end(world, request.chunks)
        if request is None or request.function:
            # The imports of a spare do not belong to a file.
            self._leftovers.end(lost)

    def _keep_house(self) -> None:
        if self._edits >= HOUSEKEEPING and self._line.requests.empty():
            self._edits = 0
            _clear_caches()
            gc.collect()

    def _show(self, request: Show) -> FromTracer:
        try:
            return self._tracing.show(request)
        except UserError as error:
            return Failed(request.id, error.failure)
        except Exception as error:
            logger.exception("failed to show a trace")
            return Failed(request.id, failure(error, "internal"))

    def _lower(self, request: Lower) -> FromTracer:
        if not self._line.start(request.id):
            return Cancelled(request.id)
        self._line.send(Stage(request.id, "lower", request.platform))
        try:
            return self._tracing.lower(request)
        except UserError as error:
            return Failed(request.id, error.failure)
        except BaseException as error:  # lowering runs rules that user code may have registered
            logger.exception("failed to lower a trace")
            return Failed(request.id, failure(error, "lower"))
        finally:
            self._restore()
            self._line.finish()

    def _outline(self, request: Outline) -> FromTracer:
        try:
            return self._tracing.outline(request)
        except UserError as error:
            return Failed(request.id, error.failure)
        except Exception as error:
            logger.exception("failed to outline a trace")
            return Failed(request.id, failure(error, "internal"))

    def _compare(self, request: Compare) -> FromTracer:
        if not self._line.start(request.id):
            return Cancelled(request.id)
        self._line.send(Stage(request.id, "compare"))
        try:
            if request.run is None:
                return self._tracing.compare(request)
            with self._worlds.running(request.run) as world:
                try:
                    world.recorder.cancelled = False
                    self._prepare(request.run, world)
                    return self._tracing.compare_with_values(
                        request, request.run, world.namespace, world.recorder
                    )
                finally:
                    self._restore(request.run, world)
        except CancelledByServer:
            return Cancelled(request.id)
        except UserError as error:
            return Failed(request.id, error.failure)
        except Spoilt:
            raise
        except BaseException as error:  # derivative and lowering rules may be user code
            logger.exception("failed to compare two traces")
            return Failed(request.id, failure(error, "compare"))
        finally:
            self._restore()
            self._line.finish()

    def _trace(self, request: Trace) -> FromTracer:
        answer = self._traced_or_failed(request)
        if wanted := self._imports.wanted:
            return Failed(request.id, Failure("whole", "ImportError", wanted))
        return answer

    def _traced_or_failed(self, request: Trace) -> FromTracer:
        at = "execute"
        world: World | None = None
        read = Reads()

        def stage(name: str, detail: str = "") -> None:
            nonlocal at
            at = name
            self._line.send(Stage(request.id, name, detail))

        if not self._line.start(request.id):
            return Cancelled(request.id)
        try:
            with self._worlds.running(request) as world:
                try:
                    world.recorder.cancelled = False
                    self._line.on_cancel(world.cancel)
                    stage(at)
                    with reads.recording(read):
                        return self._traced(request, world, read, stage)
                finally:
                    # First, as user code may have changed `builtins`.
                    self._restore(request, world)
                    self._line.finish()
                    self._edits += world.executed > 0
        except CancelledByServer:
            return Cancelled(request.id)
        except UserError as error:
            return self._failed(request, world, read, error.failure, error.observed)
        except Spoilt:
            raise
        except (
            BaseException
        ) as error:  # user code may raise anything, SystemExit and KeyboardInterrupt included
            told = failure(error, at)
            if not told.frames:
                logger.exception("request %s failed", request.id)
                told = replace(told, stage="internal")
            return self._failed(request, world, read, told, None)

    def _prepare(self, request: Trace, world: World) -> None:
        """Execute the slice, from the beginning if a file that its statements read has changed."""
        known = self._reads.setdefault(world, Reads())
        if not known.current():
            importlib.invalidate_caches()
            world.outdate()
            known.clear()
        self._patches.begin(world, request.chunks)
        with reads.recording(known):
            world.prepare(request, self._imports)

    def _modules(self, world: World, read: Reads) -> tuple[str, ...]:
        """Return the files whose changes invalidate an answer: those imported, and those read."""
        known = self._reads.get(world, Reads())
        return tuple(sorted({*world.files(self._imports), *known, *read}))

    def _traced(
        self, request: Trace, world: World, read: Reads, stage: Callable[[str, str], None]
    ) -> Traced | Shown:
        begin = time.perf_counter()
        self._prepare(request, world)
        seconds = time.perf_counter() - begin
        # The executed chunks, which have other ids if a text has changed but not its meaning.
        executed = replace(request, chunks=world.chunks)
        if request.sourcerize is not None:
            written = self._tracing.sourcerize(
                executed, request.sourcerize, world.namespace, world.recorder, stage
            )
            world.note_imports(self._imports)
            return replace(written, reused=_reused(request, world))
        traced = self._tracing.trace(executed, world.namespace, world.recorder, stage)
        self._traced_in[request.id] = ref(world)
        while len(self._traced_in) > TRACES:
            del self._traced_in[next(iter(self._traced_in))]
        world.note_imports(self._imports)
        return replace(
            traced,
            modules=self._modules(world, read),
            seconds=(("execute", seconds), *traced.seconds),
            warnings=tuple(dict.fromkeys((*world.warnings, *traced.warnings))),
            executed=world.executed,
            reused=_reused(request, world),
            caveats=world.caveats,
        )

    def _failed(
        self,
        request: Trace,
        world: World | None,
        read: Reads,
        told: Failure,
        observed: Observed | None,
    ) -> Failed:
        self._leftovers.doubt(told)
        if world is None:
            return Failed(request.id, told)
        if observed is None:
            observed = world.recorder.collect(world.chunks, [])
        return Failed(
            request.id,
            told,
            seen=observed.seen,
            observations=observed.observations,
            modules=self._modules(world, read),
            executed=world.executed,
            reused=_reused(request, world),
            caveats=world.caveats,
        )


def _reused(request: Trace, world: World) -> tuple[Reused, ...]:
    """Return the chunks that were reused; fewer than requested if a chunk raised an error."""
    return tuple(
        Reused(asked.id, executed.id, executed.text)
        for asked, executed in zip(request.chunks, world.chunks, strict=False)
        if asked.id != executed.id
    )


def _warm_up() -> None:
    """Trace a small function, so that JAX's one-time work is done before the first request."""

    def small(x: jax.Array) -> jax.Array:
        return jax.numpy.tanh(x @ x.T).sum()

    shape = jax.ShapeDtypeStruct((2, 2), "float32")  # type: ignore[no-untyped-call]
    jax.jit(jax.grad(small)).trace(shape)
    views.names()
