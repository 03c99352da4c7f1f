"""Projects: a root folder with its settings, its Python environment and its tracers.

A file belongs to the nearest folder above it that marks a project (`MARKERS`), or to the workspace
folder that contains it. A file of an installed library belongs to the workspace's first folder (the
working folder if there is none), which has its example inputs. Settings are read only here, and
again when a settings file changes. A project starts no process before a question is asked about it,
and none while its folder is not trusted: the workspace folder that contains it, or its own root
outside of the workspace.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from jaxsight.events import Consent, Event, Message, Output, Progress, State, Status
from jaxsight.examples.example_settings import LIBRARIES, ExampleSettings
from jaxsight.files.ownership import is_everybodys
from jaxsight.projects.python_discovery import (
    Interpreter,
    InterpreterError,
    choose,
    has_jax,
    is_installed_for,
    own_interpreter,
)
from jaxsight.rules.finding import Finding
from jaxsight.settings import ProjectSettings, Settings, merge, read_project
from jaxsight.targets.target import Target
from jaxsight.trust import Policy, Trust
from jaxsight.trust.decisions import over_ssh
from jaxsight.trust.words import shown_path
from jaxsight.wire.messages.tracing import (
    Cancelled,
    Compared,
    Failed,
    Import,
    Imported,
    Lower,
    Lowered,
    Outline,
    Outlined,
    Show,
    Shown,
    Sourcerize,
    Stage,
    Traced,
)
from jaxsight.workers import results as outcomes
from jaxsight.workers.importing import import_whole
from jaxsight.workers.limits import Limits
from jaxsight.workers.results import Died, Outcome
from jaxsight.workers.supervisor import Priority, Tracers

if TYPE_CHECKING:
    # At run time this module is imported alone, to start tracers while the rest of the engine is
    # still being imported.
    from jaxsight.queries.documents import Document
    from jaxsight.queries.located_answer import Answer
    from jaxsight.queries.query import Question

log = logging.getLogger(__name__)

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
SETTINGS_FILE = "pyproject.toml"
IDLE = 60.0
"""Seconds after which a project without open files ends its processes.

They start again for the next question.
"""
SPARES = 2
"""Number of projects, the last used ones, that keep a second tracer warm."""
LONG = 1.0
"""Duration of a trace after which progress is shown, in seconds."""


class Project:
    """One root. It is re-created when its settings change, so everything in it is consistent."""

    def __init__(
        self,
        root: str,
        folder: str,
        read: ProjectSettings,
        editor: Mapping[str, object],
        editor_python: str,
        owner: Projects,
    ) -> None:
        self.root = root
        self.folder = folder
        """The folder whose trust covers this project."""
        self.read = read
        self.settings: Settings = merge(read, editor)
        self.outside = ExampleSettings(self.settings.sizes, self.settings.examples)
        self._owner = owner
        self._tracers: Tracers | None = None
        self._listener: asyncio.Task[None] | None = None
        self._told: Status | None = None
        self.interpreter: Interpreter | None = None
        self.problem = ""
        try:
            self.interpreter = choose(
                root,
                self.settings.python,
                editor_python,
                os.environ,
                own=own_interpreter(),
                may_use=self._may_use,
            )
        except InterpreterError as error:
            self.problem = str(error)
        self._elsewhere = self._names_python_elsewhere(editor)
        """Whether the project's own settings name a Python interpreter outside of its folder."""
        self.held_back = self._held_back()
        """Why no process of this project may start; empty if it may."""

    @property
    def untrusted(self) -> bool:
        """Whether the user must agree before any code runs."""
        return bool(self.held_back)

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

    def _held_back(self) -> str:
        trust = self._owner.trust
        if not trust.may_run(self.folder):
            match trust.policy:
                case Policy.NEVER:
                    return "this folder is not trusted, so its code does not run (`trust = never`)"
                case Policy.ASK if trust.client is not False:
                    remedy = trust.remedy(self.folder)
                    return f"this folder is not trusted, so its code does not run; {remedy}"
                case _:
                    return "the workspace is not trusted, so its code does not run"
        if self._elsewhere and self.interpreter is not None:
            python = self.interpreter.path
            if not trust.may_start(self.folder, python):
                return (
                    f"the interpreter {shown_path(python)} of the project's settings is outside "
                    f"the project and waits for your approval; {trust.remedy(self.folder, python)}"
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

    def not_sent(self, host: str) -> str:
        """Return why nothing of this project is compiled on another machine; empty if it may be.

        The user is asked the first time.
        """
        trust = self._owner.trust
        python = self._owner.any_settings.compiler.remote_python
        if trust.may_send(self.folder, host, python):
            return ""
        self._owner.ask(trust.consent_to_send(self.folder, host, python))
        return (
            f"compiling on {shown_path(host)} waits for your approval, because StableHLO with its "
            f"constants leaves this machine; {trust.remedy(self.folder, over_ssh(host, python))}"
        )

    def _named(self) -> tuple[str, str]:
        """Return the interpreter's path and why it was chosen; empty if there is none."""
        found = self.interpreter
        return (found.path, found.reason) if found is not None else ("", "")

    @property
    def environment(self) -> str:
        """What answers depend on besides the text."""
        python = self.interpreter.path if self.interpreter else ""
        return f"{python} {self.settings.platform}"

    @property
    def signature(self) -> object:
        """Equal for two projects that would give the same answers."""
        return self.root, self.settings, self.read, self.environment, self.held_back

    def start_ahead(self) -> None:
        """Start the tracer if it may run and is likely to be needed."""
        if self.interpreter is not None and not self.held_back and has_jax(self.interpreter.path):
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
            self._tell("untrusted", self.held_back)

    async def trace(self, question: Question, waiting: bool) -> Traced | Failed | Cancelled | Died:
        """Trace the function of a question."""
        reply = await self._request(question, None, waiting=waiting)
        assert not isinstance(reply, Shown | Lowered | Outlined | Compared), (
            "the answer to a trace is not a text"
        )
        return reply

    async def _request(
        self, question: Question, sourcerize: Sourcerize | None, *, waiting: bool
    ) -> Outcome:
        tracers = self._started()
        if tracers is None:
            death = outcomes.Death(outcomes.Reason.UNAVAILABLE, last_words=self.problem)
            return Died(0, "", death)
        if waiting:
            self._owner.used(self)
        self._owner.give_overlays(tracers, "" if question.slice.sees_lines else question.path)
        request = question.request(tracers.next_id(), sourcerize)
        priority = Priority.PERSON if waiting else Priority.DOCUMENT
        progress = _LongWork(self._owner.events, question)
        try:
            return await tracers.request(request, priority=priority, on_stage=progress.stage)
        finally:
            progress.end()

    async def show(
        self, answer: Answer, what: str, platform: str = ""
    ) -> Shown | Failed | Died | None:
        """Return a text of a traced function, or the error.

        Returns `None` if the tracer that traced it has ended.
        """
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        reply = await tracers.request(Show(tracers.next_id(), answer.reply.id, what, platform))
        match reply:
            case Shown() | Died():
                return reply
            case Failed() if reply.failure.stage in ("view", "lower"):
                return reply
            case _:
                return None

    @property
    def jax(self) -> str:
        """The version of JAX that traces, once it is known."""
        hello = self._tracers.status.hello if self._tracers is not None else None
        return hello.jax if hello is not None else ""

    async def lower(self, answer: Answer, target: Target) -> Lowered | Failed | Died | None:
        """Return a traced function as StableHLO, or the error.

        Returns `None` if the tracer that traced it has ended.
        """
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        request = Lower(tracers.next_id(), answer.reply.id, target.platform, target.capability)
        reply = await tracers.request(request, priority=Priority.BACKGROUND)
        match reply:
            case Lowered() | Died():
                return reply
            case Failed() if reply.failure.stage == "lower":
                return reply
            case _:
                return None

    async def outline(self, answer: Answer) -> Outlined | None:
        """Return a traced program as plain data; `None` if the tracer that traced it has ended."""
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        request = Outline(tracers.next_id(), answer.reply.id)
        reply = await tracers.request(request, priority=Priority.BACKGROUND)
        return reply if isinstance(reply, Outlined) else None

    async def sourcerize(
        self, question: Question, wanted: Sourcerize
    ) -> Shown | Failed | Cancelled | Died:
        """Write the function of a question as source, in a tracer."""
        reply = await self._request(question, wanted, waiting=True)
        assert not isinstance(reply, Traced | Lowered | Outlined | Compared), (
            "the answer to a request for source is a text"
        )
        return reply

    async def import_whole(self, request: Import) -> Imported | Failed | Died:
        """Import a whole file in a process of its own."""
        if self.interpreter is None or self.untrusted:
            death = outcomes.Death(outcomes.Reason.UNAVAILABLE, last_words=self.problem)
            return Died(request.id, "", death)
        return await import_whole(
            self.interpreter.path,
            request,
            limits=Limits(memory=self.settings.memory_limit),
            variables=self._variables,
        )

    @property
    def _variables(self) -> dict[str, str]:
        """The environment variables that the settings define."""
        return {"JAX_PLATFORMS": self.settings.platform} if self.settings.platform else {}

    def withdraw(self, path: str) -> None:
        """Let tracers read a closed file from disk instead of the editor's text."""
        if self._tracers is not None:
            self._tracers.overlay(path, None)

    async def restart(self) -> None:
        if self._tracers is not None:
            await self._tracers.restart()

    async def aclose(self) -> None:
        if self._tracers is not None:
            await self._tracers.aclose()
        if self._listener is not None:
            self._listener.cancel()

    def _started(self) -> Tracers | None:
        if self._tracers is None and self.interpreter is not None and not self.untrusted:
            timeouts = self.settings.timeouts
            self._tracers = Tracers(
                self.interpreter.path,
                self.root,
                limits=Limits(
                    execute=timeouts.execute,
                    inputs=timeouts.inputs,
                    trace=timeouts.trace,
                    memory=self.settings.memory_limit,
                ),
                variables=self._variables,
                locate=self._owner.locate,
                spare=self._owner.may_keep_spare(self),
            )
            self._tracers.start()
            self._listener = asyncio.create_task(
                self._listen(self._tracers), name=f"tracers of {self.root}"
            )
        elif self.problem:
            self._tell("failed", self.problem)
        return self._tracers

    async def _listen(self, tracers: Tracers) -> None:
        while True:
            match await tracers.events.get():
                case outcomes.Status(state, message, hello):
                    jax = f"{hello.jax} on Python {hello.python}" if hello is not None else ""
                    self._tell(state.value, message, jax)
                case outcomes.Output(file, text):
                    self._owner.events.put_nowait(Output(file, text))
                case outcomes.Replaced(outcomes.Death(outcomes.Reason.SPOILED, last_words=reason)):
                    log.info("replaced the tracer of %s: %s", self.root, reason)
                case outcomes.Replaced(death, file) if death.reason is not outcomes.Reason.STOPPED:
                    log.warning(
                        "a tracer of %s died (%s) while tracing %s",
                        self.root,
                        death,
                        file or "nothing",
                    )

    def _tell(self, state: State, detail: str, jax: str = "") -> None:
        path, reason = self._named()
        status = Status(self.root, state, detail, path, reason, jax)
        if status == self._told:
            return
        if state == "failed" and (self._told is None or self._told.detail != detail):
            self._owner.events.put_nowait(Message("error", detail))
        if state == "starting":
            self._owner.events.put_nowait(Progress(f"start {self.root}", "Starting JAX", detail))
        elif self._told is not None and self._told.state == "starting":
            self._owner.events.put_nowait(Progress(f"start {self.root}", "Starting JAX", done=True))
        self._told = status
        self._owner.events.put_nowait(status)


class Projects:
    """All projects of a session, and its workspace folders."""

    def __init__(self, trust: Trust | None = None, *, idle: float = IDLE) -> None:
        """Start without folders and settings.

        Args:
            trust: decides which code may run; by default from the user's own decisions.
            idle: seconds after which a project without open files ends its processes.
        """
        self.trust = trust if trust is not None else Trust.of_user()
        self._idle = idle
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.documents: dict[str, Document] = {}
        """The open documents; the session maintains them."""
        self._roots: tuple[str, ...] = ()
        """The workspace folders, inner ones first."""
        self._first = ""
        """The first workspace folder in the editor's order."""
        self._editor: Mapping[str, object] = {}
        self._editor_by_root: Mapping[str, Mapping[str, object]] = {}
        self._editor_python: Mapping[str, str] = {}
        self._told_problems: set[str] = set()
        self._projects: dict[str, Project] = {}
        self._root_of: dict[str, str] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._used: list[str] = []
        """Roots that keep a spare tracer, the last used one first."""

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None,
        editor_python: Mapping[str, str],
        editor_by_root: Mapping[str, Mapping[str, object]],
    ) -> bool:
        """Take the editor's folders and settings; return whether any project changed.

        `trusted` is the editor's own trust in the workspace, if it has one.
        """
        self._first = roots[0] if roots else ""
        self._roots = tuple(sorted(roots, key=len, reverse=True))
        self._editor, self._editor_python = editor, editor_python
        self.trust.client = trusted
        self._editor_by_root = editor_by_root
        self._root_of.clear()
        layers = (editor, *editor_by_root.values())
        problems = {p: None for layer in layers for p in merge(ProjectSettings(""), layer).problems}
        for problem in problems:
            if problem not in self._told_problems:
                self.events.put_nowait(Message("warning", problem))
        self._told_problems = set(problems)
        return self._look_again()

    def start_ahead(self) -> None:
        """Start the tracers of workspace folders before the first question, if JAX is installed.

        In a project without JAX nothing starts. The user is not asked here, because code may never
        have to run.
        """
        for folder in self._roots:
            self.of(str(Path(folder, "__init__.py"))).start_ahead()

    def files_changed(self, paths: Sequence[str]) -> bool:
        """Read changed settings again; return whether any project changed."""
        if not any(PurePath(path).name in (*MARKERS, "pyvenv.cfg") for path in paths):
            return False
        self._root_of.clear()
        return self._look_again()

    def of(self, path: str) -> Project:
        """Return the project that a file belongs to."""
        root = self._root_of.get(path)
        if root is None:
            root = self._root_of[path] = self._find_root(path)
        project = self._projects.get(root)
        if project is None:
            project = self._projects[root] = self._made(root)
            project.opened()
        return project

    def ask(self, consent: Consent | None) -> None:
        """Ask the user, once."""
        if consent is not None and self.trust.first_time(consent):
            self.events.put_nowait(consent)

    def ask_again(self, folder: str | None) -> bool:
        """Ask the user again for all pending decisions, or for those about one folder.

        Returns whether there are any.
        """
        for each in self._roots if folder is None else (folder,):
            self.of(str(Path(each, "__init__.py")))
        projects = [p for p in self._projects.values() if folder in (None, p.folder, p.root)]
        folders = {project.folder for project in projects}
        asked = (each for one in folders for each in self.trust.waiting(one))
        waiting = {(each.folder, each.what): each for each in asked}
        now = (project.consent() for project in projects)
        waiting |= {(each.folder, each.what): each for each in now if each is not None}
        for consent in waiting.values():
            self.events.put_nowait(consent)
        return bool(waiting)

    def decided(self) -> bool:
        """Apply a decision made here or in another process; return whether any project changed."""
        return self._look_again()

    @property
    def any_settings(self) -> Settings:
        """The settings of the first project, for resources that all projects share."""
        return next((project.settings for project in self._projects.values()), Settings())

    def settings_findings(self, path: str) -> list[Finding] | None:
        """Return the findings in a settings file; `None` for any other file."""
        if PurePath(path).name != SETTINGS_FILE:
            return None
        return list(self.of(path).read.problems)

    def closed(self, path: str) -> None:
        """Let imports of a closed file read it from disk again."""
        root = self._root_of.pop(path, None)
        for project in self._projects.values():
            project.withdraw(path)
        if root is not None and (owner := self._projects.get(root)) is not None:
            self.watch_idle(owner)

    def watch_idle(self, project: Project) -> None:
        """End the processes of a project after a while without open files."""
        with contextlib.suppress(RuntimeError):  # without an event loop there are no processes
            asyncio.get_running_loop().call_later(self._idle, self._end_idle, project)

    def used(self, project: Project) -> None:
        """Record a person's question about a project: the last used ones keep a spare tracer."""
        if project.root in self._used[:1]:
            return
        self._used = [project.root, *(root for root in self._used if root != project.root)]
        for root in self._used[SPARES:]:
            if (other := self._projects.get(root)) is not None:
                other.keep_spare(False)
        del self._used[SPARES:]
        project.keep_spare(True)

    def may_keep_spare(self, project: Project) -> bool:
        """Return whether a project that starts may have a spare tracer.

        The first ones may without having been used.
        """
        if len(self._used) < SPARES and project.root not in self._used:
            self._used.append(project.root)
        return project.root in self._used

    def give_overlays(self, tracers: Tracers, running: str) -> None:
        """Send a tracer the texts of the open files, except that of the file `running`.

        Few functions ask for the lines of their own file.
        """
        for path, document in self.documents.items():
            tracers.overlay(path, None if path == running else document.text)

    def locate(self, path: str, chunk: str) -> int | None:
        """Return the line (from 1) at which a chunk now begins; `None` if it is gone."""
        document = self.documents.get(path)
        if document is None:
            return None
        return next((c.first_line + 1 for c in document.module.chunks if c.id == chunk), None)

    async def restart(self, root: str | None) -> None:
        chosen = [p for p in self._projects.values() if root is None or p.root == root]
        await asyncio.gather(*(project.restart() for project in chosen))

    async def aclose(self) -> None:
        await asyncio.gather(
            *(project.aclose() for project in self._projects.values()), *self._closing
        )

    def _made(self, root: str) -> Project:
        folders = [folder for folder in self._roots if _holds(folder, root)]
        folder = folders[0] if folders else root
        python = next((self._editor_python[f] for f in folders if f in self._editor_python), "")
        editor = next(
            (self._editor_by_root[f] for f in folders if f in self._editor_by_root), self._editor
        )
        return Project(root, folder, read_project(root), editor, python, self)

    def _look_again(self) -> bool:
        changed = False
        for root, project in list(self._projects.items()):
            now = self._made(root)
            if now.signature == project.signature:
                continue
            changed = True
            self._projects[root] = now
            now.opened()
            if project.held_back and not now.held_back:
                now.start_ahead()
            task = asyncio.get_running_loop().create_task(project.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return changed

    def _end_idle(self, project: Project) -> None:
        if any(self.of(path) is project for path in self.documents):
            return
        if project.root in self._used:
            self._used.remove(project.root)
        task = asyncio.get_running_loop().create_task(self._send_to_sleep(project))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _send_to_sleep(self, project: Project) -> None:
        if await project.sleep():
            log.info("ended the tracers of %s, of which no file is open", project.root)
        else:
            self.watch_idle(project)

    def _find_root(self, path: str) -> str:
        workspace = next((root for root in self._roots if _holds(root, path)), None)
        if workspace is None and _is_library(path):
            first = self._first or str(Path.cwd())
            if not _is_library(first):
                project = self.of(str(Path(first, SETTINGS_FILE)))
                python = project.interpreter
                if python is not None and is_installed_for(python.path, path):
                    return project.root
        own = Path(path).parent
        for folder in Path(path).parents:
            marked = any(os.path.exists(folder / marker) for marker in MARKERS)  # noqa: PTH110 (never raises)
            if marked and (workspace is not None or folder == own or not is_everybodys(folder)):
                return str(folder)
            if str(folder) == workspace:
                break
        return workspace if workspace is not None else str(own)


class _LongWork:
    """Shows the progress of a trace that takes long, with its current stage."""

    def __init__(self, events: asyncio.Queue[Event], question: Question) -> None:
        self._events = events
        self._key = f"{question.path}:{question.subject.name}:{question.key}"
        self._title = f"Tracing {question.subject.name}"
        self._detail = "waiting for the tracer"
        self._begun = False
        self._timer = asyncio.get_running_loop().call_later(LONG, self._begin)

    def stage(self, stage: Stage) -> None:
        self._detail = stage.detail or stage.stage
        if self._begun:
            self._events.put_nowait(Progress(self._key, self._title, self._detail))

    def end(self) -> None:
        self._timer.cancel()
        if self._begun:
            self._events.put_nowait(Progress(self._key, self._title, done=True))

    def _begin(self) -> None:
        self._begun = True
        self._events.put_nowait(Progress(self._key, self._title, self._detail))


def _is_library(path: str) -> bool:
    return not LIBRARIES.isdisjoint(PurePath(path).parts)


def _holds(folder: str, path: str) -> bool:
    return PurePath(path).is_relative_to(folder)
