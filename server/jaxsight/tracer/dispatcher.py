"""Answer requests in order, and restore the process between them.

`handlers/table.py` says which handler answers a request; here is what surrounds every answer.
All results of user code, unless it ends the process, become answers.
An internal error becomes an answer too (`Failed` at stage `internal`), with the traceback on the
output.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import importlib
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from weakref import ref

import jax

from jaxsight.files.texts import Version
from jaxsight.timeline import mark
from jaxsight.tracer.calls.inputs import Evaluator
from jaxsight.tracer.compat import fake_devices
from jaxsight.tracer.connection import Connection
from jaxsight.tracer.execution.device_demand import MoreDevices, guess_caveat, guess_note
from jaxsight.tracer.execution.execution_cache import executed_statements
from jaxsight.tracer.execution.file_namespace import FileNamespace
from jaxsight.tracer.execution.library_changes import LibraryChanges
from jaxsight.tracer.execution.namespaces import Namespaces
from jaxsight.tracer.failures import UserError, failure
from jaxsight.tracer.handlers.show import view_names
from jaxsight.tracer.handlers.table import HANDLERS, Handler
from jaxsight.tracer.importing.imports import Imports
from jaxsight.tracer.interruptions import CancelledByServer
from jaxsight.tracer.isolation import file_reads, refusals
from jaxsight.tracer.isolation.baseline import Baseline
from jaxsight.tracer.isolation.file_reads import Reads
from jaxsight.tracer.isolation.irreversible_effects import IrreversibleEffects, Spoilt
from jaxsight.tracer.job import ExecutedModule, Job, Traces
from jaxsight.tracer.observation import scopes
from jaxsight.tracer.observation.observed_values import Observed
from jaxsight.wire.chunks import Chunk
from jaxsight.wire.messages.replies import (
    Cancelled,
    DryCalls,
    Failed,
    FromTracer,
    Listing,
    Reply,
    Spoiled,
    Stage,
    Traced,
)
from jaxsight.wire.messages.requests import AboutTrace, Overlay, Request, Trace
from jaxsight.wire.observations import Caveat, Failure, Reused

if TYPE_CHECKING:
    from jaxsight.tracer.dry_runs.programs import DryRuns

logger = logging.getLogger(__name__)

# Bound now, as user code may replace it.
_clear_caches: Callable[[], None] = jax.clear_caches

HOUSEKEEPING = 128
"""Number of edits after which JAX's caches are cleared.

They keep classes and functions of earlier texts alive (33 KiB for an edited class that is passed to
a jitted helper); clearing them takes about 20 ms, and slows the next trace by as much.
"""

FIRST_LINE = 80
"""Characters of a statement that a person sees while it is executed, in a status bar."""

TRACES = 64
"""Maximum number of traces whose namespace is remembered, which is more than are kept."""


class Tracer:
    """The state of the process across requests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._imports = Imports()
        self._namespaces = Namespaces(self._imports)
        self._traces = Traces()
        self._evaluator = Evaluator()
        self._irreversible = IrreversibleEffects()
        self._traced_in: dict[int, ref[FileNamespace]] = {}
        """The namespaces of traces that requests may still refer to, by id."""
        self._edits = 0
        refusals.watch()  # first: a file that is refused is not written
        file_reads.watch()
        # A request that waits already does the same work by being answered.
        if connection.requests.empty():
            _warm_up()
            # Before freezing, as frozen garbage is never freed.
            gc.collect()
        self._library_changes = LibraryChanges(self._imports, self._irreversible)
        gc.freeze()  # JAX's objects stay alive, so collections need not scan them
        gc.enable()
        self._baseline = Baseline()

    @functools.cached_property
    def _dry_runs(self) -> DryRuns:
        # Imported on first use: the first shapes do not wait for it.
        from jaxsight.tracer.dry_runs.programs import DryRuns

        return DryRuns(self._imports.modules)

    def run(self) -> None:
        """Answer requests until the process exits, because the server has closed the pipe."""
        while True:
            match self._connection.requests.get():
                case Overlay(path, text):
                    self._imports.texts.put(path, text)
                case AboutTrace(executes=None) as request:
                    self._send(self._about(HANDLERS[type(request)], request))
                case Request(executes=Trace() as slice) as request:
                    self._send(self._apart(self._executed, HANDLERS[type(request)], request, slice))
                    # Only while nobody waits.
                    if self._edits >= HOUSEKEEPING and self._connection.requests.empty():
                        self._edits = 0
                        _clear_caches()
                        scopes.forget()
                        gc.collect()
                case Request(executes=None) as request:
                    self._send(HANDLERS[type(request)].answer(Job(request, self._traces)))
                case message:
                    logger.error("unexpected message from the server: %s", type(message).__name__)

    def _apart(
        self,
        answer: Callable[..., FromTracer | None],
        handler: Handler,
        request: Request[object],
        about: Trace | FileNamespace | None,
    ) -> FromTracer | None:
        """Answer a request in a context of its own, which discards context variables that it sets.

        Returns the answer, or `None` if it has been sent. If it needs a fresh process, the answer
        is `Spoiled`.
        """
        try:
            self._irreversible.begin(about.file if about is not None else "")
            return contextvars.copy_context().run(answer, handler, request, about)
        except Spoilt as spoilt:
            return Spoiled(request.id, str(spoilt))

    def _send(self, answer: FromTracer | None) -> None:
        if answer is not None:
            self._connection.send(answer)

    def _about(self, handler: Handler, request: AboutTrace[object]) -> FromTracer | None:
        """Answer a request about a trace, with its file's changes of libraries applied."""
        namespace = self._traced_in.get(request.trace, lambda: None)()
        with self._library_changes.applied(namespace), fake_devices.hidden():
            return self._apart(self._answer, handler, request, namespace)

    def _answer(
        self, handler: Handler, request: AboutTrace[object], namespace: FileNamespace | None
    ) -> FromTracer | None:
        runs_user_code = bool(handler.runs_user_code)
        if runs_user_code and not self._connection.start(request.id):
            return Cancelled(request.id)
        reply: FromTracer | None = None
        try:
            reply = handler.answer(Job(request, self._traces, self._announcing(request)))
        except UserError as error:
            return Failed(request.id, error.failure)
        except BaseException as error:
            # Without user code, `SystemExit` and `KeyboardInterrupt` are about this process.
            if not runs_user_code and not isinstance(error, Exception):
                raise
            logger.exception("failed to answer %s", type(request).__name__)
            return Failed(request.id, failure(error, handler.runs_user_code or "internal"))
        finally:
            if runs_user_code:
                self._baseline.restore_python()
                self._connection.finish()
                if reply is not None and self._sent(reply):
                    reply = None
                self._restore()
        return reply

    def _executed(
        self, handler: Handler, request: Request[object], slice: Trace
    ) -> FromTracer | None:
        """Execute the slice of a request, and return the answer; `None` if it has been sent."""
        while True:
            try:
                answer = self._executed_or_failed(handler, request, slice)
            except MoreDevices as need:
                self._namespaces.demand(slice, need)
                continue
            if not self._namespaces.platform.was_refused:
                break
            # Code has asked for a platform that was not shown: once more, with that.
            self._namespaces.platform.insist(slice.file)
        return self._unless_whole(request.id, answer) if answer is not None else None

    def _unless_whole(self, id: int, answer: FromTracer) -> FromTracer:
        """Return the answer, unless other modules import names from the file."""
        if wanted := self._imports.wanted:
            return Failed(id, Failure("whole", "ImportError", wanted))
        return answer

    def _executed_or_failed(
        self, handler: Handler, request: Request[object], slice: Trace
    ) -> FromTracer | None:
        at, read = "execute", Reads()
        namespace: FileNamespace | None = None
        tell = self._announcing(request)

        def announce(stage: str, detail: str) -> None:
            nonlocal at
            at = stage
            tell(stage, detail)

        if not self._connection.start(request.id):
            return Cancelled(request.id)
        completed: Reply | None = None
        try:
            with self._namespaces.running(slice) as namespace:
                try:
                    namespace.recorder.cancelled = False
                    self._connection.on_cancel(namespace.cancel)
                    self._announce_execution(request.id, namespace)
                    announce(at, "")
                    with file_reads.recording(read):
                        begin = time.perf_counter()
                        module = self._prepared(slice, namespace)
                        seconds = time.perf_counter() - begin
                        mark("executed")
                        reply = Job(request, self._traces, announce, module).answer(handler.answer)
                    for path, version in module.files.items():
                        read.note(path, version)
                    namespace.note_imports()
                    completed = self._completed(reply, slice, namespace, read, seconds)
                finally:
                    # First, as user code may have changed `builtins`.
                    self._baseline.restore_python()
                    self._connection.finish()
                    if (
                        completed is not None
                        and not self._namespaces.platform.was_refused
                        and self._sent(self._unless_whole(request.id, completed))
                    ):
                        completed = None
                    self._restore(slice, namespace)
                    self._edits += namespace.executed > 0
            return completed
        except CancelledByServer:
            return Cancelled(request.id)
        except UserError as error:
            return self._failed(request, slice, namespace, read, error.failure, error.observed)
        # Not errors of user code: the request is repeated.
        except (Spoilt, MoreDevices):
            raise
        # User code may raise anything, `SystemExit` and `KeyboardInterrupt` included.
        except BaseException as error:
            problem = failure(error, at)
            if not problem.frames:
                logger.exception("request %s failed", request.id)
                problem = replace(problem, stage="internal")
            return self._failed(request, slice, namespace, read, problem, None)

    def _sent(self, reply: FromTracer) -> bool:
        """Send a reply before the rest of the process is restored, and return whether that worked.

        Restoring takes as long as a small trace, and the reply does not depend on it.
        """
        try:
            self._connection.send(reply)
        except Exception:
            # The file's changes of libraries are undone later: then it can be sent.
            logger.exception("cannot send the reply yet")
            return False
        return True

    def _announcing(self, request: Request[object]) -> Callable[[str, str], None]:
        """Return the function that sends the server the stages of a request."""
        return lambda stage, detail: self._connection.send(Stage(request.id, stage, detail))

    def _announce_execution(self, id: int, namespace: FileNamespace) -> None:
        """Have the server told which statements a request executes, and which files it imports."""

        def announce_chunk(chunk: Chunk) -> None:
            line = chunk.text.strip().partition("\n")[0][:FIRST_LINE]
            self._connection.send(Stage(id, "execute", line, chunk.id))

        def announce_file(path: str, version: Version) -> None:
            self._connection.tell(Stage(id, "execute", file=path, version=version))

        namespace.announce, self._imports.modules.announce = announce_chunk, announce_file

    def _restore(self, slice: Trace | None = None, namespace: FileNamespace | None = None) -> None:
        """Restore the process after a request, and record changes that cannot be undone.

        `Baseline.restore_python` comes before it.
        """
        lost = self._baseline.restore()
        if slice is not None and namespace is not None:
            lost += self._library_changes.end(namespace, slice.chunks)
        if slice is None or slice.function:
            # The imports of a spare do not belong to a file.
            self._irreversible.end(lost)

    def _prepared(self, slice: Trace, namespace: FileNamespace) -> ExecutedModule:
        """Execute the slice, from the beginning if a file that its statements read has changed."""
        if not self._imports.texts.are_current(namespace.reads.unwritten()):
            # Finders remember what a folder had when they last listed it.
            importlib.invalidate_caches()
            namespace.outdate()
            namespace.reads.clear()
        self._library_changes.begin(namespace, slice.chunks)
        with file_reads.recording(namespace.reads):
            namespace.prepare(slice)
        for caveat in namespace.caveats:
            self._irreversible.doubt(caveat.reason)
        executed = replace(slice, chunks=namespace.chunks)
        return ExecutedModule(
            executed,
            namespace.names,
            namespace.recorder,
            self._evaluator,
            lambda: executed_statements(namespace.slice),
            lambda: self._dry_runs,
        )

    def _completed(
        self, reply: Reply, slice: Trace, namespace: FileNamespace, read: Reads, seconds: float
    ) -> Reply:
        """Return a handler's reply with what is known of the execution of the slice."""
        if isinstance(reply, Traced | DryCalls | Listing):
            files, reused = self._files(namespace, read), _reused(slice, namespace)
            reply = replace(reply, files=files, reused=reused)
        if isinstance(reply, DryCalls):
            return replace(reply, caveats=namespace.caveats)
        if not isinstance(reply, Traced):
            return reply
        self._traced_in[reply.id] = ref(namespace)
        while len(self._traced_in) > TRACES:
            del self._traced_in[next(iter(self._traced_in))]
        platform = self._namespaces.platform
        return replace(
            reply,
            seconds=(("execute", seconds), *reply.seconds),
            warnings=tuple(dict.fromkeys((*namespace.warnings, *reply.warnings))),
            executed=namespace.executed,
            caveats=(
                *namespace.caveats,
                *reply.caveats,
                *self._unknown_devices(reply.id, namespace),
                *platform.caveats(namespace.chunks, namespace.importer_of),
            ),
            asks_platform=platform.concerns(namespace.depends_on, namespace.chunks),
        )

    def _unknown_devices(self, id: int, namespace: FileNamespace) -> tuple[Caveat, ...]:
        """Return the caveat of a trace for a number of devices that nobody has named."""
        if not namespace.guesses_devices:
            return ()
        jaxpr = self._traces.of(id).shown.jaxpr
        current = self._imports.modules.texts.current
        texts = {file: current(file) for file in namespace.files()}
        about = namespace.chunks, namespace.names, jaxpr, texts, namespace.importer_of
        caveat = guess_caveat(*about)
        return (caveat,) if caveat is not None else ()

    def _files(self, namespace: FileNamespace, read: Reads) -> tuple[tuple[str, Version], ...]:
        """Return the files that an answer was made of: those imported, and those read."""
        read_files = read.unwritten() | namespace.reads.unwritten()
        return tuple(sorted({**read_files, **namespace.files()}.items()))

    def _failed(
        self,
        request: Request[object],
        slice: Trace,
        namespace: FileNamespace | None,
        read: Reads,
        problem: Failure,
        observed: Observed | None,
    ) -> Failed:
        self._irreversible.doubt(problem.message)
        if namespace is None:
            return Failed(request.id, problem)
        platform = self._namespaces.platform
        asks_platform = platform.concerns(namespace.depends_on, namespace.chunks)
        notes = (
            guess_note(slice.chunks) if namespace.guesses_devices else "",
            platform.note() if asks_platform else "",
        )
        problem = replace(problem, notes=(*problem.notes, *filter(None, notes)))
        if observed is None:
            observed = namespace.recorder.collect(namespace.chunks, [])
        of_platform = platform.caveats(namespace.chunks, namespace.importer_of)
        caveats = (*namespace.caveats, *of_platform)
        return Failed(
            request.id,
            problem,
            seen=observed.seen,
            observations=observed.observations,
            files=self._files(namespace, read),
            executed=namespace.executed,
            reused=_reused(slice, namespace),
            caveats=tuple(caveat for caveat in caveats if caveat.reason != problem.message),
            asks_platform=asks_platform,
        )


def _reused(slice: Trace, namespace: FileNamespace) -> tuple[Reused, ...]:
    """Return the chunks that were reused; fewer than requested if a chunk raised an error."""
    pairs = zip(slice.chunks, namespace.chunks, strict=False)
    return tuple(Reused(sent.id, ran.id, ran.text) for sent, ran in pairs if sent.id != ran.id)


def _warm_up() -> None:
    """Trace a small function, so that JAX's one-time work is done before the first request."""

    def small(x: jax.Array) -> jax.Array:
        return jax.numpy.tanh(x @ x.T).sum()

    shape = jax.ShapeDtypeStruct((2, 2), "float32")  # type: ignore[no-untyped-call]
    jax.jit(jax.grad(small)).trace(shape)
    view_names()
