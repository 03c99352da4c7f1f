"""Projects: a root folder with its settings, its interpreter and its tracers.

A file belongs to the nearest folder above it that marks a project (`MARKERS`), or to the workspace's folder that holds
it; an installed library's to the workspace's first folder (the working folder where there is none), where its example
inputs are. Settings are read here and nowhere else, and again when a settings file changes. A project starts no process
before something is asked of it, and none at all while the workspace is not trusted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from jaxsight.engine.answers import Finding
from jaxsight.engine.events import Event, Message, Output, Progress, State, Status
from jaxsight.engine.interpreters import (
    Interpreter,
    InterpreterError,
    choose,
    has_jax,
    own_interpreter,
)
from jaxsight.engine.outside import LIBRARIES, Outside
from jaxsight.engine.settings import ProjectSettings, Settings, merge, read_project
from jaxsight.tracer.protocol import (
    Cancelled,
    Compared,
    Failed,
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
from jaxsight.workers import outcomes
from jaxsight.workers.limits import Limits
from jaxsight.workers.outcomes import Died, Outcome
from jaxsight.workers.supervisor import Priority, Tracers

if TYPE_CHECKING:
    # At run time this module is imported alone, to start tracers while the rest of the engine is still read.
    from jaxsight.engine.documents import Document
    from jaxsight.engine.questions import Question
    from jaxsight.engine.views import Answer

log = logging.getLogger(__name__)

MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
SETTINGS_FILE = "pyproject.toml"
LONG = 1.0
"""Seconds after which a running trace is worth a progress message."""


class Project:
    """One root. Made anew when its settings change, so everything in it agrees."""

    def __init__(
        self,
        root: str,
        read: ProjectSettings,
        editor: Mapping[str, object],
        editor_python: str,
        trusted: bool,
        owner: Projects,
    ) -> None:
        self.root = root
        self.read = read
        self.settings: Settings = merge(read, editor)
        self.outside = Outside(self.settings.sizes, self.settings.examples)
        self.untrusted = not trusted
        self._owner = owner
        self._tracers: Tracers | None = None
        self._listener: asyncio.Task[None] | None = None
        self._told: Status | None = None
        self.interpreter: Interpreter | None = None
        self.problem = ""
        try:
            self.interpreter = choose(
                root, self.settings.python, editor_python, os.environ, own=own_interpreter()
            )
        except InterpreterError as error:
            self.problem = str(error)

    @property
    def environment(self) -> str:
        """What answers depend on besides the text."""
        python = self.interpreter.path if self.interpreter else ""
        return f"{python} {self.settings.platform}"

    @property
    def signature(self) -> object:
        """Equal for two projects that would answer alike."""
        return self.root, self.settings, self.read, self.environment, self.untrusted

    def start_ahead(self) -> None:
        """Start the tracer if it is likely to be needed."""
        if self.interpreter is not None and has_jax(self.interpreter.path):
            self._started()

    def opened(self) -> None:
        """Say at once that nothing will run where nothing may."""
        if self.untrusted:
            self._tell("untrusted", "no code of this workspace runs until you trust it")

    async def trace(self, question: Question, waiting: bool) -> Traced | Failed | Cancelled | Died:
        """Have a tracer answer."""
        reply = await self._request(question, None, waiting=waiting)
        assert not isinstance(reply, Shown | Lowered | Outlined | Compared), (
            "a trace is not answered by a text"
        )
        return reply

    async def _request(
        self, question: Question, sourcerize: Sourcerize | None, *, waiting: bool
    ) -> Outcome:
        tracers = self._started()
        if tracers is None:
            death = outcomes.Death(outcomes.Reason.UNAVAILABLE, last_words=self.problem)
            return Died(0, "", death)
        self._owner.give_overlays(tracers, question.path)
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
        """A whole text of what was traced, or why there is none; nothing when the tracer that traced it is gone."""
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

    async def lower(self, answer: Answer, platform: str) -> Lowered | Failed | Died | None:
        """What was traced in StableHLO, or why it is not; nothing when the tracer that traced it is gone."""
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        request = Lower(tracers.next_id(), answer.reply.id, platform)
        reply = await tracers.request(request, priority=Priority.BACKGROUND)
        match reply:
            case Lowered() | Died():
                return reply
            case Failed() if reply.failure.stage == "lower":
                return reply
            case _:
                return None

    async def outline(self, answer: Answer) -> Outlined | None:
        """What was traced as plain data; nothing when the tracer that traced it is gone."""
        tracers = self._started()
        if tracers is None or not isinstance(answer.reply, Traced):
            return None
        request = Outline(tracers.next_id(), answer.reply.id)
        reply = await tracers.request(request, priority=Priority.BACKGROUND)
        return reply if isinstance(reply, Outlined) else None

    async def sourcerize(
        self, question: Question, wanted: Sourcerize
    ) -> Shown | Failed | Cancelled | Died:
        """Have a tracer write the function of a question as source."""
        reply = await self._request(question, wanted, waiting=True)
        assert not isinstance(reply, Traced | Lowered | Outlined | Compared), (
            "what asks for source is answered by a text"
        )
        return reply

    def withdraw(self, path: str) -> None:
        """The editor's text of a file is no more."""
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
                variables={"JAX_PLATFORMS": self.settings.platform}
                if self.settings.platform
                else {},
                locate=self._owner.locate,
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
                case outcomes.Replaced(death, file) if death.reason is not outcomes.Reason.STOPPED:
                    log.warning(
                        "a tracer of %s died (%s) while at %s", self.root, death, file or "nothing"
                    )

    def _tell(self, state: State, detail: str, jax: str = "") -> None:
        path, reason = (
            (self.interpreter.path, self.interpreter.reason)
            if self.interpreter is not None
            else ("", "")
        )
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
    """All projects of a session, and the workspace that they lie in."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.documents: dict[str, Document] = {}
        """The open documents; the session keeps them."""
        self._roots: tuple[str, ...] = ()
        """The workspace's folders, the inner ones first."""
        self._first = ""
        """The first one as the editor lists them."""
        self._editor: Mapping[str, object] = {}
        self._editor_by_root: Mapping[str, Mapping[str, object]] = {}
        self._editor_python: Mapping[str, str] = {}
        self._told_problems: set[str] = set()
        self._trusted = True
        self._projects: dict[str, Project] = {}
        self._root_of: dict[str, str] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool,
        editor_python: Mapping[str, str],
        editor_by_root: Mapping[str, Mapping[str, object]],
    ) -> bool:
        """Take the editor's view; whether any project is another one now."""
        self._first = roots[0] if roots else ""
        self._roots = tuple(sorted(roots, key=len, reverse=True))
        self._editor, self._editor_python, self._trusted = editor, editor_python, trusted
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
        """Start the tracers of the workspace's folders before anybody asks, where JAX is installed.

        Elsewhere nothing starts: a project without JAX is to hear nothing of us.
        """
        for folder in self._roots:
            self.of(str(Path(folder, "__init__.py"))).start_ahead()

    def files_changed(self, paths: Sequence[str]) -> bool:
        """Read settings again where their file changed; whether any project is another one now."""
        if not any(PurePath(path).name in (*MARKERS, "pyvenv.cfg") for path in paths):
            return False
        self._root_of.clear()
        return self._look_again()

    def of(self, path: str) -> Project:
        """The project that a file belongs to."""
        root = self._root_of.get(path)
        if root is None:
            root = self._root_of[path] = self._find_root(path)
        project = self._projects.get(root)
        if project is None:
            project = self._projects[root] = self._made(root)
            project.opened()
        return project

    @property
    def any_settings(self) -> Settings:
        """Those of the first project, for what all share."""
        return next((project.settings for project in self._projects.values()), Settings())

    def settings_findings(self, path: str) -> list[Finding] | None:
        """What is wrong in a settings file; `None` for any other file."""
        if PurePath(path).name != SETTINGS_FILE:
            return None
        return list(self.of(path).read.problems)

    def closed(self, path: str) -> None:
        """Imports of this file see what is on disk again."""
        self._root_of.pop(path, None)
        for project in self._projects.values():
            project.withdraw(path)

    def give_overlays(self, tracers: Tracers, running: str) -> None:
        """Tell a tracer the open files' texts, but for the one that it is about to run a slice of."""
        for path, document in self.documents.items():
            tracers.overlay(path, None if path == running else document.module.text)

    def locate(self, path: str, chunk: str) -> int | None:
        """The line (from 1) at which a chunk begins now; `None` when it is gone."""
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
        python = next((self._editor_python[f] for f in folders if f in self._editor_python), "")
        editor = next(
            (self._editor_by_root[f] for f in folders if f in self._editor_by_root), self._editor
        )
        return Project(root, read_project(root), editor, python, self._trusted, self)

    def _look_again(self) -> bool:
        changed = False
        for root, project in list(self._projects.items()):
            now = self._made(root)
            if now.signature == project.signature:
                continue
            changed = True
            self._projects[root] = now
            if project.untrusted and not now.untrusted:
                now.start_ahead()
            task = asyncio.get_running_loop().create_task(project.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        return changed

    def _find_root(self, path: str) -> str:
        workspace = next((root for root in self._roots if _holds(root, path)), None)
        if workspace is None and _is_library(path):
            first = self._first or str(Path.cwd())
            if not _is_library(first):
                return self._find_root(str(Path(first, SETTINGS_FILE)))
        for folder in Path(path).parents:
            if any((folder / marker).exists() for marker in MARKERS):
                return str(folder)
            if str(folder) == workspace:
                break
        if workspace is not None:
            return workspace
        return self._roots[-1] if self._roots else str(Path(path).parent)


class _LongWork:
    """A progress message for a trace that takes long, with the stage that it is at."""

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
