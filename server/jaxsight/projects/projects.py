"""All projects of a session, and the workspace folders they are in.

A file belongs to the nearest folder above it that marks a project (`MARKERS`), or to the workspace
folder that contains it. Where a link in that folder leads out of it, the folder where the file
really is must be trusted as well. A file of an installed library belongs to the
workspace's first folder (the working folder if there is none), which has its example inputs.
Settings are read only here, and again when a settings file changes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path, PurePath

from jaxsight.events import Consent, Event, Message
from jaxsight.files.ownership import is_everybodys
from jaxsight.files.reading import MARKERS, is_marked
from jaxsight.files.texts import Texts
from jaxsight.projects.project import OpenFile, Project
from jaxsight.projects.python_discovery import is_installed_for
from jaxsight.recording.recorded_file import is_recorded_file
from jaxsight.rules.finding import Finding
from jaxsight.settings.example_settings import LIBRARIES
from jaxsight.settings.reading import ProjectSettings, merge, read_project
from jaxsight.settings.schema import Settings
from jaxsight.trust import Trust
from jaxsight.workers.results import Sources

log = logging.getLogger(__name__)

_Place = tuple[str, str]
"""The root of a project, and the folder whose trust covers it."""

SETTINGS_FILE = "pyproject.toml"
IDLE = 60.0
"""Seconds after which a project without open files ends its processes, a choice: with fewer,
switching between projects costs starts. They start again for the next question."""
SPARES = 2
"""Projects, the last used ones, that keep a second tracer warm, a choice: each costs 180 MiB."""


class Projects:
    """All projects of a session, and its workspace folders."""

    def __init__(
        self,
        trust: Trust | None = None,
        *,
        idle: float = IDLE,
        only_written: bool = False,
        spares: int = SPARES,
    ) -> None:
        """Start without folders and settings.

        Args:
            trust: decides which code may run; by default from the user's own decisions.
            idle: seconds after which a project without open files ends its processes.
            only_written: whether only what users wrote as example inputs counts.
            spares: the number of projects, the last used ones, that keep a second tracer warm.
        """
        self.only_written = only_written
        self._spares = spares
        self.trust = trust if trust is not None else Trust.of_user()
        self._idle = idle
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.documents: Mapping[str, OpenFile] = {}
        """The open documents, which the session maintains."""
        self.texts = Texts()
        """The texts of all files, by which answers are recognized as current."""
        self.sources = Sources()
        """What the answers of tracers were made of; whoever wants to know begins new ones."""
        self._roots: tuple[str, ...] = ()
        """The workspace folders, inner ones first."""
        self._first = ""
        """The first workspace folder in the editor's order."""
        self._editor: Mapping[str, object] = {}
        self._editor_by_root: Mapping[str, Mapping[str, object]] = {}
        self._editor_python: Mapping[str, str] = {}
        self._told_problems: set[str] = set()
        self._projects: dict[_Place, Project] = {}
        self._place_of: dict[str, tuple[str, _Place]] = {}
        """By path: where the file really is, and the place of its project."""
        self._is_relinked = False
        self._this_turn: dict[str, Project] = {}
        """Projects of files, by path, until the event loop's next turn."""
        self._closing: set[asyncio.Task[None]] = set()
        self._used: list[str] = []
        """Roots that keep a spare tracer, the last used one first."""

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None = None,
        editor_python: Mapping[str, str] | None = None,
        editor_by_root: Mapping[str, Mapping[str, object]] | None = None,
    ) -> bool:
        """Take the editor's folders and settings; return whether any project changed.

        `trusted` is the editor's own trust in the workspace, if it has one.
        """
        self._first = roots[0] if roots else ""
        self._roots = tuple(sorted(roots, key=len, reverse=True))
        self._editor, self._editor_python = editor, editor_python or {}
        self.trust.client = trusted
        self.trust.open_folders(roots)
        self._editor_by_root = editor_by_root or {}
        layers = (editor, *self._editor_by_root.values())
        problems = {p: None for layer in layers for p in merge(ProjectSettings(""), layer).problems}
        for problem in problems:
            if problem not in self._told_problems:
                self.events.put_nowait(Message("warning", problem))
        self._told_problems = set(problems)
        return self._look_again()

    @property
    def first_folder(self) -> str:
        """The first workspace folder in the editor's order; without one, the current folder."""
        return self._first or str(Path.cwd())

    def prestart(self) -> None:
        """Start the tracers of workspace folders before the first question, if JAX is installed.

        In a project without JAX nothing starts. The user is not asked here, because code may never
        have to run.
        """
        for folder in self._roots:
            self.of(str(Path(folder, "__init__.py"))).prestart()

    def look_for_recordings(self) -> bool:
        """Read what was recorded in runs since the last time; return whether there was any."""
        changed = [project.look_for_recording() for project in self._projects.values()]
        return any(changed)

    def files_changed(self, paths: Sequence[str]) -> bool:
        """Read changed settings and recordings again; return whether any settings changed."""
        for path in filter(is_recorded_file, paths):
            root = str(Path(path).parent.parent)
            for project in self._projects.values():
                if project.root == root:
                    project.read_recorded()
        if not any(PurePath(path).name in (*MARKERS, "pyvenv.cfg") for path in paths):
            return False
        return self._look_again()

    def of(self, path: str) -> Project:
        """Return the project that a file belongs to."""
        if (found := self._this_turn.get(path)) is not None:
            return found
        real = os.path.realpath(path)
        if (known := self._place_of.get(path)) is None or known[0] != real:
            known = self._place_of[path] = real, self._find_place(path, real)
        place = known[1]
        if (project := self._projects.get(place)) is None:
            project = self._projects[place] = self._made(place)
            project.opened()
        elif project.leads_elsewhere:
            self._is_relinked = True
            self._look_again()
            project = self._projects[place]
        # A hover asks a dozen times, and each time all folders above were looked at for links.
        # `Project.held_back`, which decides whether code may run, looks each time.
        with contextlib.suppress(RuntimeError):  # without an event loop there are no turns
            asyncio.get_running_loop().call_soon(self._this_turn.clear)
            self._this_turn[path] = project
        return project

    def relinked(self) -> bool:
        """Return whether links of projects were turned to other folders since the last call."""
        if any(project.leads_elsewhere for project in self._projects.values()):
            self._is_relinked = self._look_again()
        was, self._is_relinked = self._is_relinked, False
        return was

    def ask(self, consent: Consent | None) -> None:
        """Ask the user, once."""
        if consent is not None and self.trust.first_time(consent):
            self.events.put_nowait(consent)

    def ask_again(self, folder: str | None) -> bool:
        """Ask the user again for all pending decisions, or for those about one folder.

        Returns whether there are any.
        """
        for root in self._roots if folder is None else (folder,):
            self.of(str(Path(root, "__init__.py")))
        projects = [p for p in self._projects.values() if folder in (None, p.folder, p.root)]
        folders = {project.folder for project in projects}
        pending = (consent for owned in folders for consent in self.trust.waiting(owned))
        waiting = {(consent.folder, consent.what): consent for consent in pending}
        now = (project.consent() for project in projects)
        waiting |= {
            (consent.folder, consent.what): consent for consent in now if consent is not None
        }
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
        """Take note that a file was closed, which may have been the last of its project."""
        known = self._place_of.pop(path, None)
        if known is not None and (owner := self._projects.get(known[1])) is not None:
            self.watch_idle(owner)

    def watch_idle(self, project: Project) -> None:
        """End the processes of a project after a while without open files."""
        with contextlib.suppress(RuntimeError):  # without an event loop there are no processes
            asyncio.get_running_loop().call_later(self._idle, self._end_idle, project)

    def used(self, project: Project) -> None:
        """Record a person's question about a project: the last used ones keep a spare tracer."""
        if not self._spares or project.root in self._used[:1]:
            return
        self._used = [project.root, *(root for root in self._used if root != project.root)]
        for root in self._used[self._spares :]:
            for unused in self._projects.values():
                if unused.root == root:
                    unused.keep_spare(False)
        del self._used[self._spares :]
        project.keep_spare(True)

    def may_keep_spare(self, project: Project) -> bool:
        """Return whether a project that starts may have a spare tracer.

        The first ones may without having been used.
        """
        if len(self._used) < self._spares and project.root not in self._used:
            self._used.append(project.root)
        return project.root in self._used

    def running_pythons(self) -> set[str]:
        """Return the interpreters that tracers of any project were started with."""
        running = (project for project in self._projects.values() if project.is_started)
        return {project.interpreter.path for project in running if project.interpreter is not None}

    def locate(self, path: str, chunk: str) -> int | None:
        """Return the line (from 1) at which a chunk now begins; `None` if it is gone."""
        document = self.documents.get(path)
        return document.line_of(chunk) if document is not None else None

    def retry(self) -> None:
        """Try again what may end otherwise now: data on disk has changed."""
        for project in self._projects.values():
            project.retry()

    async def restart(self, root: str | None) -> None:
        chosen = [p for p in self._projects.values() if root is None or p.root == root]
        await asyncio.gather(*(project.restart() for project in chosen))

    async def aclose(self) -> None:
        await asyncio.gather(
            *(project.aclose() for project in self._projects.values()), *self._closing
        )

    def _made(self, place: _Place) -> Project:
        root, folder = place
        folders = [folder for folder in self._roots if _holds(folder, root)]
        python = next((self._editor_python[f] for f in folders if f in self._editor_python), "")
        editor = next(
            (self._editor_by_root[f] for f in folders if f in self._editor_by_root), self._editor
        )
        return Project(root, folder, read_project(root), editor, python, self)

    def _look_again(self) -> bool:
        self._this_turn.clear()
        self._place_of.clear()
        changed = False
        for place, project in list(self._projects.items()):
            now = self._made(place)
            if now.signature == project.signature:
                continue
            changed = True
            self._projects[place] = now
            now.opened()
            if project.held_back and not now.held_back:
                now.prestart()
            self._hold(project.aclose())
        return changed

    def _hold(self, closing: Coroutine[None, None, None]) -> None:
        """Let processes end in the background."""
        task = asyncio.get_running_loop().create_task(closing)
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _end_idle(self, project: Project) -> None:
        if any(self.of(path) is project for path in self.documents):
            return
        if project.root in self._used:
            self._used.remove(project.root)

        async def send_to_sleep() -> None:
            if await project.sleep():
                log.info("ended the tracers of %s, of which no file is open", project.root)
            else:
                self.watch_idle(project)

        self._hold(send_to_sleep())

    def _find_place(self, path: str, real: str) -> _Place:
        root = self._find_root(path)
        folder = self._folder_of(root)
        is_led_out = _holds(folder, path) and not _holds(os.path.realpath(folder), real)
        # Both must be trusted: what it imports is beside the link.
        is_next = is_led_out and self.trust.may_run(folder)
        if is_next and not self._is_installed(folder, path):
            return root, self._folder_of(self._find_root(real))
        return root, folder

    def _folder_of(self, root: str) -> str:
        """Return the workspace folder that contains a root; else the root itself."""
        return next((folder for folder in self._roots if _holds(folder, root)), root)

    def _is_installed(self, folder: str, path: str) -> bool:
        """Return whether a file is of a library that programs in a folder import anyway."""
        python = (
            self.of(str(Path(folder, SETTINGS_FILE))).interpreter if _is_library(path) else None
        )
        return python is not None and is_installed_for(python.path, path)

    def _find_root(self, path: str) -> str:
        workspace = next((root for root in self._roots if _holds(root, path)), None)
        if (
            workspace is None
            and not _is_library(first := self.first_folder)
            and self._is_installed(first, path)
        ):
            return self.of(str(Path(first, SETTINGS_FILE))).root
        own = Path(path).parent
        for folder in Path(path).parents:
            if is_marked(folder) and (
                workspace is not None or folder == own or not is_everybodys(folder)
            ):
                return str(folder)
            if str(folder) == workspace:
                break
        return workspace if workspace is not None else str(own)


def _is_library(path: str) -> bool:
    return not LIBRARIES.isdisjoint(PurePath(path).parts)


def _holds(folder: str, path: str) -> bool:
    return PurePath(path).is_relative_to(folder)
