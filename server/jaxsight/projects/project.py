"""A project: a root folder with its settings, its Python environment and its tracers.

It starts no process before it is asked something, and none while its folder is not trusted: the
workspace folder that contains it, or its own root outside of the workspace.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol, TypeVar

from jaxsight.events import Consent, Event, Message, Output, Progress, State, Status
from jaxsight.files.texts import MISSING, Texts
from jaxsight.projects import python_discovery
from jaxsight.recording import recorded_file
from jaxsight.recording.recorded_file import RecordedFileError
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.settings.reading import ProjectSettings, merge
from jaxsight.settings.schema import Settings
from jaxsight.trust import Policy, Trust
from jaxsight.trust.decisions import over_ssh, path_text
from jaxsight.wire.messages.replies import Failed, Hello, Imported, Stage
from jaxsight.wire.messages.requests import Import, Request
from jaxsight.workers import results
from jaxsight.workers.confinement.start import held
from jaxsight.workers.importing import import_whole
from jaxsight.workers.limits import Limits
from jaxsight.workers.request_queue import CurrentStep, Haste
from jaxsight.workers.results import Died, Outcome, Sources
from jaxsight.workers.supervisor import Priority, Tracers

if TYPE_CHECKING:
    from jaxsight.examples.sets import OutsideSet


# What functions of a project were called with in recorded runs, as example inputs.

LABEL = "as recorded"

Observed = Mapping[tuple[str, str], tuple["OutsideSet", ...]]
"""Observed calls by the path of a file and the id of a function in it."""


def recorded_calls(root: str) -> tuple[Observed, str]:
    """Return recorded calls by file and function, and why there are none if the file is broken."""
    try:
        functions = recorded_file.read(root)
    except RecordedFileError as error:
        path = path_text(str(recorded_file.path_in(root)))
        return {}, f"{path} is ignored: {error}; delete it, or record again"
    if not functions:
        return {}, ""
    from jaxsight.examples.sets import OutsideSet  # 30 ms, which most projects need not wait for

    return {
        (str(Path(root, file)), name): tuple(
            OutsideSet("recorded", LABEL, call.inputs, may_fail=not call.is_traced)
            for call in calls
        )
        for (file, name), calls in functions.items()
    }, ""


log = logging.getLogger(__name__)

R = TypeVar("R")


class OpenFile(Protocol):
    """An open document, as far as tracers and their output are concerned."""

    @property
    def text(self) -> str:
        """The editor's text."""

    def line_of(self, chunk: str) -> int | None:
        """Return the line (from 1) at which a chunk now begins; `None` if it is gone."""


class Owner(Protocol):
    """What a project needs of all projects together."""

    trust: Trust
    only_written: bool
    events: asyncio.Queue[Event]
    texts: Texts
    sources: Sources

    @property
    def any_settings(self) -> Settings:
        """The settings of the first project."""

    def ask(self, consent: Consent | None) -> None:
        """Ask the user, once."""

    def used(self, project: Project) -> None:
        """Record a person's question about a project."""

    def may_keep_spare(self, project: Project) -> bool:
        """Return whether a project that starts may have a spare tracer."""

    def watch_idle(self, project: Project) -> None:
        """End the processes of a project after a while without open files."""

    def locate(self, path: str, chunk: str) -> int | None:
        """Return the line (from 1) at which a chunk now begins; `None` if it is gone."""


class Project:
    """One root. It is re-created when its settings change, so everything in it is consistent."""

    def __init__(
        self,
        root: str,
        folder: str,
        read: ProjectSettings,
        editor: Mapping[str, object],
        editor_python: str,
        owner: Owner,
    ) -> None:
        self.root = root
        self.folder = folder
        """The folder whose trust covers this project."""
        self._real = os.path.realpath(folder), os.path.realpath(root)
        self.read = read
        self.settings: Settings = merge(read, editor)
        self._recorded_problem = ""
        self._recorded_at = MISSING
        self._owner = owner
        self.texts, self.events = owner.texts, owner.events
        self.outside = self._outside()
        self._tracers: Tracers | None = None
        self._greeted: Hello | None = None
        self._listener: asyncio.Task[None] | None = None
        self._last_status: Status | None = None
        self.interpreter: python_discovery.PythonInterpreter | None = None
        self.problem = ""
        try:
            self.interpreter = python_discovery.choose(
                root,
                self.settings.python,
                editor_python,
                os.environ,
                own=python_discovery.own_interpreter(),
                may_use=self._may_use,
            )
        except python_discovery.InterpreterError as error:
            self.problem = str(error)
        self._elsewhere = self._names_python_elsewhere(editor)
        """Whether the project's own settings name a Python interpreter outside of its folder."""
        self._undecided = self._held_back()

    @property
    def held_back(self) -> str:
        """Why no process of this project may start; empty if it may.

        A link may lead elsewhere than when this was decided, at any time.
        """
        if self.leads_elsewhere:
            return f"{path_text(self.folder)} leads to another folder than before"
        return self._undecided

    @property
    def leads_elsewhere(self) -> bool:
        """Whether its folders are links that were turned to others since it was created."""
        return (os.path.realpath(self.folder), os.path.realpath(self.root)) != self._real

    def _may_use(self, folder: str) -> bool:
        """Return whether environments and versions in a folder at or above the root may be used."""
        if PurePath(folder).is_relative_to(self.folder):
            return True
        return self._owner.trust.may_use_above(folder)

    def _names_python_elsewhere(self, editor: Mapping[str, object]) -> bool:
        if self.interpreter is None or not self.read.values.get("python"):
            return False
        if merge(ProjectSettings(""), editor).python:
            return False  # the editor's setting won
        real = PurePath(os.path.realpath(PurePath(self.interpreter.path).parent))
        return not real.is_relative_to(os.path.realpath(self.folder))

    def look_for_recording(self) -> bool:
        """Read what was recorded in runs since the last time; return whether there was any."""
        return recorded_file.stamp(self.root) != self._recorded_at and self.read_recorded()

    def read_recorded(self) -> bool:
        """Read again what was recorded in runs; return whether it changed."""
        outside = self._outside()
        if outside.observed == self.outside.observed:
            return False
        self.outside = outside
        return True

    def _outside(self) -> ExampleSettings:
        self._recorded_at = recorded_file.stamp(self.root)
        observed, problem = recorded_calls(self.root)
        if problem and problem != self._recorded_problem:
            self.events.put_nowait(Message("warning", problem))
        self._recorded_problem = problem
        settings = self.settings
        return ExampleSettings(
            settings.sizes,
            settings.examples,
            settings.mesh,
            observed,
            only_written=self._owner.only_written,
        )

    def _held_back(self) -> str:
        trust, folder = self._owner.trust, self._real[0]
        if not trust.may_run(folder):
            match trust.policy:
                case Policy.NEVER:
                    return "this folder is not trusted, so its code does not run (`trust = never`)"
                case Policy.ASK | Policy.OPENED if trust.client is not False:
                    remedy = trust.remedy(folder)
                    return f"this folder is not trusted, so its code does not run; {remedy}"
                case _:
                    return "the workspace is not trusted, so its code does not run"
        if self._elsewhere and self.interpreter is not None:
            python = self.interpreter.path
            if not trust.may_start(folder, python):
                return (
                    f"the interpreter {path_text(python)} of the project's settings is outside "
                    f"the project and waits for your approval; {trust.remedy(folder, python)}"
                )
        return ""

    def consent(self) -> Consent | None:
        """Return the question whose answer would let this project's code run.

        Returns `None` if there is nothing to ask.
        """
        trust = self._owner.trust
        python, reason = self._named()
        if not trust.may_run(self.folder):
            return trust.consent_to_run(self.folder, python, reason, elsewhere=self._elsewhere)
        if self._elsewhere and not trust.may_start(self.folder, python):
            return trust.consent_to_start(self.folder, python)
        return None

    def ask_consent(self) -> None:
        """Ask the user to let this project's code run, unless they were asked before."""
        self._owner.ask(self.consent())

    def may_send(self, host: str) -> bool:
        """Return whether programs of this project may be compiled on another machine."""
        python = self._owner.any_settings.compiler.remote_python
        return self._owner.trust.may_send(self._real[0], host, python)

    def not_sent(self, host: str) -> str:
        """Return why nothing of this project is compiled on another machine; empty if it may be.

        The user is asked the first time.
        """
        if self.may_send(host):
            return ""
        trust = self._owner.trust
        python = self._owner.any_settings.compiler.remote_python
        self._owner.ask(trust.consent_to_send(self.folder, host, python))
        return (
            f"compiling on {path_text(host)} waits for your approval, because StableHLO with its "
            f"constants leaves this machine; {trust.remedy(self._real[0], over_ssh(host, python))}"
        )

    def _named(self) -> tuple[str, str]:
        """Return the interpreter's path and why it was chosen; empty if there is none."""
        interpreter = self.interpreter
        return (interpreter.path, interpreter.reason) if interpreter is not None else ("", "")

    @property
    def environment(self) -> str:
        """What answers depend on besides the text."""
        python = self.interpreter.path if self.interpreter else ""
        return f"{python} {self.settings.platform}"

    @property
    def signature(self) -> object:
        """Equal for two projects that would give the same answers."""
        return self.root, self.settings, self.read, self.environment, self._undecided, self._real

    @property
    def limits(self) -> Limits:
        """The limits of its tracers, from the settings."""
        timeouts = self.settings.timeouts
        return Limits(
            execute=timeouts.execute,
            inputs=timeouts.inputs,
            trace=timeouts.trace,
            compile=timeouts.compile,
            measure=timeouts.measure,
            memory=self.settings.memory_limit,
        )

    @property
    def sources(self) -> Sources:
        """What the answers of all tracers were made of."""
        return self._owner.sources

    def step(self, haste: Haste) -> CurrentStep | None:
        """Return what a tracer does with a request, or what the request waits for, if anything."""
        return self._tracers.step(haste) if self._tracers is not None else None

    @property
    def is_started(self) -> bool:
        """Whether it has tracers, which may have ended."""
        return self._tracers is not None

    @property
    def starts(self) -> str:
        """The Python that is being started for a tracer; empty if none is."""
        is_starting = self._tracers is not None and self._tracers.status.state.value == "starting"
        return self._named()[0] if is_starting else ""

    def prestart(self) -> None:
        """Start the tracer if it may run and is likely to be needed."""
        if (
            self.interpreter is not None
            and not self.held_back
            and python_discovery.has_jax(self.interpreter.path)
        ):
            self._started()
            self._owner.watch_idle(self)

    def keep_spare(self, wanted: bool) -> None:
        """Keep a second tracer warm from now on, or end it."""
        if self._tracers is not None:
            self._tracers.keep_spare(wanted)

    async def sleep(self) -> bool:
        """End all processes until the next question; return `False` while a request runs."""
        return self._tracers is None or await self._tracers.sleep()

    def opened(self) -> None:
        """Report at once that nothing runs in this project, if so."""
        if self.held_back:
            self._emit_status("untrusted", self.held_back)

    async def ask(
        self,
        request: Request[R],
        *,
        priority: Priority | Haste = Priority.BACKGROUND,
        on_stage: Callable[[Stage], None] | None = None,
    ) -> Outcome[R]:
        """Send a request to the project's tracer, and return the answer.

        Args:
            request: the request, not numbered yet.
            priority: that of a person also keeps a spare tracer warm.
            on_stage: called with each stage that the tracer reports.
        """
        if (tracers := self._started()) is None:
            why = self.problem or self.held_back
            return results.unavailable(request, why)
        urgency = priority.priority if isinstance(priority, Haste) else priority
        if request.executes is not None and urgency is Priority.PERSON:
            self._owner.used(self)
        return await self.sources.collect(
            tracers.ask(request, priority=priority, on_stage=on_stage, texts=self.texts.open)
        )

    @property
    def jax(self) -> str:
        """The version of JAX that traces, once it is known."""
        return self.hello.jax if self.hello is not None else ""

    @property
    def plugins(self) -> tuple[str, ...]:
        """The accelerators that this JAX has plugins for, once they are known."""
        return self.hello.plugins if self.hello is not None else ()

    @property
    def hello(self) -> Hello | None:
        """The handshake of the newest tracer, also while the next one starts."""
        hello = self._tracers.status.hello if self._tracers is not None else None
        self._greeted = hello or self._greeted
        return self._greeted

    def remember(self, hello: Hello) -> None:
        """Take the handshake of an earlier session's tracer, while none has started here."""
        self._greeted = self._greeted or hello

    async def import_whole(self, request: Import) -> Imported | Failed | Died:
        """Import a whole file in a process of its own."""
        if self.interpreter is None or self.held_back:
            why = self.problem or self.held_back
            return results.unavailable(request, why)
        return await import_whole(
            self.interpreter.path,
            request,
            limits=Limits(memory=self.settings.memory_limit),
            variables=self.variables,
        )

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that the settings define."""
        return {"JAX_PLATFORMS": self.settings.platform} if self.settings.platform else {}

    def retry(self) -> None:
        """Try again what ended tracers."""
        if self._tracers is not None:
            self._tracers.retry()

    async def restart(self) -> None:
        if self._tracers is not None:
            await self._tracers.restart()

    async def aclose(self) -> None:
        if self._tracers is not None:
            await self._tracers.aclose()
        if self._listener is not None:
            self._listener.cancel()

    def _started(self) -> Tracers | None:
        if self.leads_elsewhere:
            return None  # its tracers would import from there
        if self._tracers is None and self.interpreter is not None and not self.held_back:
            self._tracers = Tracers(
                self.interpreter.path,
                self.root,
                limits=self.limits,
                variables=self.variables,
                locate=self._owner.locate,
                files=self.texts,
                spare=self._owner.may_keep_spare(self),
            )
            self._tracers.start()
            self._listener = asyncio.create_task(
                self._listen(self._tracers), name=f"tracers of {self.root}"
            )
        elif self.problem:
            self._emit_status("failed", self.problem)
        return self._tracers

    def other_tracers(self, variables: Mapping[str, str], *, confined: bool = True) -> Tracers:
        """Return a tracer of its own beside the project's; there must be an interpreter."""
        assert self.interpreter is not None
        return Tracers(
            self.interpreter.path,
            self.root,
            limits=self.limits,
            spare=False,
            variables=variables,
            confined=confined,
        )

    async def _listen(self, tracers: Tracers) -> None:
        while True:
            match await tracers.events.get():
                case results.TracerStatus(state, message, hello):
                    jax = f"{hello.jax} on Python {hello.python}" if hello is not None else ""
                    self._emit_status(state.value, message, jax)
                case results.TracerOutput(file, text):
                    self.events.put_nowait(Output(file, text))
                case results.Replaced(results.Death(results.Reason.SPOILED, last_words=reason)):
                    log.info("replaced the tracer of %s: %s", self.root, reason)
                case results.Replaced(death, file) if death.reason is not results.Reason.STOPPED:
                    log.warning(
                        "a tracer of %s died (%s) while tracing %s",
                        self.root,
                        death,
                        file or "nothing",
                    )

    def _emit_status(self, state: State, detail: str, jax: str = "") -> None:
        path, reason = self._named()
        if state == "ready" and self._owner.trust.is_opened(self.folder):
            detail = "its code runs because the client has opened it (trust = opened)"
        status = Status(self.root, state, detail, path, reason, jax, held())
        if status == self._last_status:
            return
        if state == "failed" and (self._last_status is None or self._last_status.detail != detail):
            self.events.put_nowait(Message("error", detail))
        if state == "starting":
            self.events.put_nowait(Progress(f"start {self.root}", "Starting JAX", detail))
        elif self._last_status is not None and self._last_status.state == "starting":
            self.events.put_nowait(Progress(f"start {self.root}", "Starting JAX", done=True))
        self._last_status = status
        self.events.put_nowait(status)
