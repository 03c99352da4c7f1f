"""The engine as its owners see it: documents go in, answers in editor terms come out.

One `Session` lives in a server process (and in each run of the terminal's commands). It does not
depend on LSP and does not import JAX. State is in `queries/`, policy and words are in `features/`;
here both are only put together. Nothing blocks: slow work is awaited, work that an edit makes
obsolete is cancelled, and earlier answers are shown meanwhile, marked as stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from jaxsight.events import Consent, Event
from jaxsight.features import code_actions, completion, named_function
from jaxsight.features.background import Background
from jaxsight.features.caveats import Completeness, completeness
from jaxsight.features.findings.findings import Findings, findings
from jaxsight.features.fixes.scheduler import Fixing
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.hover.hover import hover
from jaxsight.features.inlay_hints.hints import hints
from jaxsight.features.lenses import lenses
from jaxsight.features.model import Action, Completion, Hint, Hover, Lens, Shown
from jaxsight.features.panel import Panel, panel
from jaxsight.features.uncompiled import Uncompiled, uncompiled
from jaxsight.features.verification import Verified, verify
from jaxsight.features.virtual_documents.show import show, with_settings
from jaxsight.projects.projects import Projects
from jaxsight.projects.python_discovery import Interpreter
from jaxsight.queries.engine import Engine
from jaxsight.queries.programs.compile_result import Result
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding
from jaxsight.source.text import Edit, Position, Range
from jaxsight.wire.messages.requests import JAXPR, SourceOptions


class Session:
    """See the module's docstring. All methods must be called from one event loop."""

    def __init__(self, projects: Projects | None = None) -> None:
        """Create a session; pass `projects` to start their tracers before the session exists."""
        self._engine = Engine.of(projects if projects is not None else Projects())
        self._fixing = Fixing.of(self._engine)
        self._background = Background(self._engine, self._look_for_decisions)
        self.events: asyncio.Queue[Event] = self._engine.events

    # Folders, settings and consent

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None = None,
        editor_python: Mapping[str, str] | None = None,
        editor_by_root: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """Take the editor's folders and settings; changes take effect at once.

        Args:
            roots: the workspace folders.
            editor: the editor's raw settings, unchecked.
            trusted: whether the editor trusts the workspace, if it says so; `False` always applies.
            editor_python: the interpreter selected in the editor, by folder.
            editor_by_root: complete settings of folders that have their own, by folder; they
                replace `editor`.
        """
        if self._engine.projects.configure(
            roots,
            editor,
            trusted=trusted,
            editor_python=editor_python or {},
            editor_by_root=editor_by_root or {},
        ):
            self._outdate()

    async def decide(self, consent: Consent, answer: str | None) -> None:
        """Take the user's answer to a question of `events`; it takes effect at once.

        `None` means that there is no answer.
        """
        projects, trust = self._engine.projects, self._engine.projects.trust
        if trust.decide(consent, answer):
            projects.decided()
            self._outdate()
            await asyncio.to_thread(trust.keep, consent, answer)
            if trust.changed() and projects.decided():
                self._outdate()

    def ask_again(self, folder: str | None = None) -> bool:
        """Ask the user again for all pending decisions, or for those about one folder.

        Returns whether there are any.
        """
        self._look_for_decisions()
        return self._engine.projects.ask_again(folder)

    def remedy(self, folder: str, what: str) -> str:
        """Return an instruction that lets a folder reach something, as an imperative clause."""
        return self._engine.projects.trust.remedy(folder, what)

    def python(self, path: str) -> Interpreter | None:
        """Return the interpreter that traces a file's functions, and why it was chosen, if any."""
        return self._engine.projects.of(path).interpreter

    # Documents

    def open(self, path: str, text: str) -> None:
        """Open a document; its functions are traced in the background from now on."""
        self._engine.documents.open(path, text)
        self._background.schedule(path)

    def change(self, path: str, text: str) -> None:
        """Replace the document's whole text."""
        self._engine.programs.edited(path)
        self._fixing.stop(path)
        self._engine.documents.put(path, text)
        self._background.schedule(path)

    def saved(self, path: str) -> None:
        """Mark the document as saved: changes are shown relative to its programs as of now."""
        self._engine.programs.saved(path)
        if self._engine.documents.get(path) is not None:
            self._engine.waiting.refresh(path)

    def close(self, path: str) -> None:
        """Close a document, and drop what is known of it."""
        self._background.stop(path)
        self._fixing.stop(path)
        self._engine.close(path)

    def files_changed(self, paths: Sequence[str]) -> None:
        """Check all open documents again after settings or imported modules changed on disk."""
        if self._engine.projects.files_changed(paths):
            self._outdate()
        else:
            self._retry()

    # What an editor shows

    async def hover(self, path: str, position: Position) -> Hover | None:
        """Return the hover of the function with example inputs, or expression, at a position."""
        return await hover(self._engine, path, position)

    async def hints(
        self, path: str, range: Range | None = None, *, wait: bool = False
    ) -> list[Hint]:
        """Return the inlay hints in a range; with `wait`, when all of them are current."""
        return await hints(self._engine, path, range, wait=wait)

    async def report(
        self, path: str, *, patience: float | None = None, kernels: bool | None = None
    ) -> Findings:
        """Return all findings of a file, with what the verification of fixes needs."""
        return await findings(self._engine, path, patience=patience, kernels=kernels)

    async def findings(
        self, path: str, *, patience: float | None = None, kernels: bool | None = None
    ) -> list[Finding]:
        """Return all findings of a file: in example inputs, traces and kernels, or settings."""
        return (await self.report(path, patience=patience, kernels=kernels)).reported

    def start_fixes(self, path: str, report: Findings) -> None:
        """Begin to verify fixes of a file's findings, unless the text has changed."""
        document = self._engine.documents.get(path)
        if document is not None and document.module is report.module:
            self._fixing.start(path, report.owners, report.target)

    async def fixes(self, path: str) -> list[Fix]:
        """Return the verified fixes of a file's findings, also about kernels; for the terminal."""
        report = await self.report(path, kernels=True)
        self.start_fixes(path, report)
        if report.module is None:
            return []
        return await self._fixing.fixes(path, report.module, None, None)

    async def lenses(self, path: str) -> list[Lens]:
        """Return the lenses above each function with example inputs."""
        return await lenses(self._engine, path)

    async def actions(self, path: str, range: Range) -> list[Action]:
        """Return the code actions for a range, with the fixes that are verified within a moment."""
        return await code_actions.actions(self._engine, self._fixing, path, range)

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        """Return the edits of a pending action; raise `LookupError` if there are none."""
        return await code_actions.resolve(self._engine, path, pending)

    async def completions(self, path: str, position: Position) -> list[Completion]:
        """Return completions inside a section of example inputs; none elsewhere."""
        return await completion.completions(self._engine, path, position)

    async def show(self, path: str, function: str, what: str | SourceOptions = JAXPR) -> Shown:
        """Return a virtual document; raise `LookupError` if it cannot be shown."""
        return await show(self._engine, path, function, what)

    def sourcerize_options(self, path: str, options: SourceOptions) -> SourceOptions:
        """Return options for source, completed from the settings of a file's project."""
        return with_settings(self._engine, path, options)

    async def panel(self, path: str, where: Position | str) -> Panel | None:
        """Return the panel's data for the function at a position or with a name, if any."""
        return await panel(self._engine, path, where)

    # What the terminal asks

    async def view(self, path: str, function: str) -> View:
        """Return the answer about one function; raise `LookupError` if there is none."""
        return await named_function.view_of(self._engine, path, function)

    async def kernels(
        self, path: str, function: str, target: str | None = None
    ) -> tuple[View, Result]:
        """Return a function compiled for a target; raise `LookupError` if it cannot be."""
        return await named_function.compiled_function(self._engine, path, function, target)

    async def completeness(self, path: str) -> list[Completeness]:
        """Return the caveats of the answer about each traced function of a file."""
        return await completeness(self._engine, path)

    async def uncompiled(self, path: str) -> list[Uncompiled]:
        """Return the functions that the last findings did not compile for the first target."""
        return await uncompiled(self._engine, path)

    async def verify(self, path: str, deadline: float | None = None) -> Verified:
        """Compare the programs of a file's functions with those of the imported module."""
        return await verify(self._engine, path, deadline)

    async def interpreter(self, path: str) -> str:
        """Return the Python interpreter of a path's project; raise `LookupError` without one."""
        project = self._engine.projects.of(path)
        if project.interpreter is None:
            raise LookupError(project.problem or "no Python interpreter with JAX found")
        return project.interpreter.path

    def functions(self, path: str) -> list[str]:
        """Return the qualified names of the functions that have example inputs."""
        document = self._engine.documents.now(path)
        subjects = self._engine.documents.subjects(document) if document is not None else ()
        return [subject.name for subject in subjects]

    # Choices

    def sets(self, path: str, function: str) -> list[str]:
        """Return the names of a function's example sets; that of an unnamed first one is empty."""
        _, subject = self._engine.documents.find(path, function)
        return [example_set.name for example_set in subject.examples.sets]

    def choose_set(self, path: str, function: str, name: str) -> None:
        """Make another example set of a function the active one; raise `LookupError` if none."""
        _, subject = self._engine.documents.find(path, function)
        self._engine.choices.choose_set(path, subject, name)
        self._background.schedule(path)

    def choose_target(self, name: str) -> None:
        """Show kernels for another target; an empty name selects that of the settings."""
        self._engine.choices.choose_target(name)
        self._retry()

    # Life

    async def restart(self, root: str | None = None) -> None:
        """Restart the tracers and drop all answers."""
        self._engine.outdate()
        await self._engine.projects.restart(root)
        self._background.schedule_all()

    async def aclose(self) -> None:
        """Cancel all background work and end every process."""
        self._background.stop_all()
        await self._fixing.aclose()
        await self._engine.aclose()

    def _look_for_decisions(self) -> None:
        """Take up decisions that the user made elsewhere, with `jaxsight trust`."""
        if self._engine.projects.trust.changed():
            self._engine.projects.decided()
            self._outdate()

    def _outdate(self) -> None:
        """Drop all answers, and ask again: settings, interpreters or decisions changed."""
        self._engine.outdate()
        self._background.schedule_all()

    def _retry(self) -> None:
        """Ask again what may have another answer now: files or the target changed."""
        self._engine.memory.retry()
        self._background.schedule_all()
