"""The engine as its owners see it: documents go in, answers in editor terms come out.

One `Session` lives in a server process (and in each run of the terminal's commands). It does not
depend on LSP and does not import JAX. State is in `queries/`, policy and words are in `features/`;
here both are put together, for answers that an editor shows: tests of the protocol put another
session in its place. What only the terminal needs of the engine, such as the view of a named
function, is a function of its feature, which it calls with `session.engine`. Nothing blocks: slow
work is awaited, work that an edit makes obsolete is cancelled, and earlier answers are shown
meanwhile, marked as stale.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from jaxsight import extensions
from jaxsight.events import Consent, Event
from jaxsight.features import code_actions, completion
from jaxsight.features.background import Background
from jaxsight.features.code_actions import EditorExtension, lenses
from jaxsight.features.findings.findings import Findings, findings
from jaxsight.features.fixes.scheduler import FixScheduler
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.hover.hover import hover
from jaxsight.features.inlay_hints.hints import hints
from jaxsight.features.measuring.actions import MeasureActions
from jaxsight.features.model import Action, Lens, VirtualText
from jaxsight.features.panel import panel
from jaxsight.features.proposals import actions as proposing
from jaxsight.features.recording.actions import RecordingRuns
from jaxsight.features.setup.targets import Installer, targets
from jaxsight.features.virtual_documents.show import show
from jaxsight.projects.projects import Projects
from jaxsight.queries.engine import Engine
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages.requests import JAXPR, TransformedSource

if TYPE_CHECKING:  # few sessions need these: the server holds 2 MiB less
    from jaxsight.features.asking.asking import AgentQuestion, ComparedProgram
    from jaxsight.features.asking.parts import AgentAnswer
    from jaxsight.features.sweeps import DrawnSweep


class Session:
    """See the module's docstring. All methods must be called from one event loop."""

    def __init__(self, projects: Projects | None = None) -> None:
        """Create a session; pass `projects` to start their tracers before the session exists."""
        self.engine = Engine(projects if projects is not None else Projects())
        self._fixing = FixScheduler(self.engine)
        self.extensions: dict[str, EditorExtension] = {
            name: extensions.part(name, "editor").extend(self.engine)
            for name in extensions.of_editors()
        }
        self.until_seen = RecordingRuns(self.engine)
        self.measuring = MeasureActions(self.engine)
        self.installer = Installer(self.engine, self._retry)
        self.background = Background(self.engine, self._look_for_decisions)
        self.events: asyncio.Queue[Event] = self.engine.events
        # What needs only the engine; tests of the protocol put other answers in their places.
        self.hover = partial(hover, self.engine)
        self.hints = partial(hints, self.engine)
        self.report = partial(findings, self.engine)
        self.resolve = partial(code_actions.resolve, self.engine)
        self.completions = partial(completion.completions, self.engine)
        self.panel = partial(panel, self.engine)
        self.offers = partial(targets, self.engine)
        self.keep_proposed = partial(proposing.keep_proposed, self.engine)

    # Folders, settings and consent

    def configure(
        self, roots: Sequence[str], editor: Mapping[str, object], **of_client: Any
    ) -> None:
        """Take the editor's folders and settings; see `Projects.configure`."""
        if self.engine.projects.configure(roots, editor, **of_client):
            self._outdate()

    async def decide(self, consent: Consent, answer: str | None) -> None:
        """Take the user's answer to a question of `events`, if there is one, at once."""
        projects, trust = self.engine.projects, self.engine.projects.trust
        if trust.decide(consent, answer):
            projects.decided()
            self._outdate()
            await asyncio.to_thread(trust.keep, consent, answer)
            if trust.changed() and projects.decided():
                self._outdate()

    def ask_again(self, folder: str | None = None) -> bool:
        """Ask again for pending decisions, of one folder or all; return whether there are any."""
        self._look_for_decisions()
        return self.engine.projects.ask_again(folder)

    # Documents

    def attend(self) -> None:
        """Let what nobody waits for wait: a message of the client has arrived."""
        self.engine.turns.attend()

    def open(self, path: str, text: str, *, in_background: bool = True) -> None:
        """Open a document; its functions are traced in the background from now on, by default."""
        self.engine.documents.open(path, text)
        if not in_background:
            return
        self.background.schedule(path)
        self.background.schedule_importers(path)

    def change(self, path: str, text: str, cursor: Position | None = None) -> None:
        """Replace the document's whole text; `cursor` is the place of the edit, if known."""
        if cursor is not None:
            self.engine.attention.point(path, cursor)
        self.engine.programs.edited(path)
        self._fixing.stop(path)
        self.engine.documents.put(path, text)
        self.background.schedule(path)
        self.background.schedule_importers(path)

    def saved(self, path: str) -> None:
        """Mark the document as saved: changes are shown relative to its programs as of now."""
        self.engine.programs.saved(path)
        if self.engine.documents.get(path) is not None:
            self.engine.waiting.refresh(path)

    def close(self, path: str) -> None:
        """Close a document, and drop what is known of it."""
        self.background.close(path)
        self._fixing.stop(path)
        self.engine.close(path)
        self.background.schedule_importers(path)

    def files_changed(self, paths: Sequence[str]) -> None:
        """Check all open documents again after settings or imported modules changed on disk."""
        if self.engine.projects.files_changed(paths):
            self._outdate()
        else:
            self._retry(data=not all(path.endswith(".py") for path in paths))

    async def preload(self) -> None:
        """Import what the first findings and proposals need, without blocking the loop."""
        await self.engine.rules.ready()
        await self.engine.proposals.preload()

    def look_for_recordings(self) -> None:
        """Take up what runs have recorded meanwhile, which not every client watches for."""
        if self.engine.projects.look_for_recordings():
            self._retry()

    # What an editor shows

    def start_fixes(self, path: str, report: Findings) -> None:
        """Begin to verify fixes of a file's findings, unless the text has changed."""
        document = self.engine.documents.get(path)
        if document is not None and document.module is report.module:
            self._fixing.start(path, report)

    async def fixes(self, path: str) -> list[Fix]:
        """Return the verified fixes of a file's findings, also about kernels; for the terminal."""
        report = await self.report(path, kernels=True)
        self.start_fixes(path, report)
        if report.module is None:
            return []
        return await self._fixing.fixes(path, report.module, None, None)

    async def lenses(self, path: str) -> list[Lens]:
        """Return the lenses above functions with example inputs, and to run a program."""
        proposes = self.engine.projects.of(path).settings.propose_inputs
        if proposes and self.engine.proposals.watch(path):
            self.background.schedule(path)
        return [*await lenses(self.engine, path), *await self.until_seen.lenses(path)]

    async def actions(self, path: str, range: Range) -> list[Action]:
        """Return the code actions for a range, with the fixes that are verified within a moment."""
        return await code_actions.actions(
            self.engine, self._fixing, self.extensions.values(), path, range
        )

    async def show(
        self,
        path: str,
        function: str,
        what: str | TransformedSource = JAXPR,
        program: str | None = None,
    ) -> VirtualText:
        """Return a virtual document; raise `LookupError` if it cannot be shown.

        `program` is the text of a program file that is open in an editor.
        """
        for extension in self.extensions.values():
            if isinstance(what, str) and what in extension.documents:
                return extension.document(path, function, what)
        return await show(self.engine, path, function, what, program)

    async def open_profile(
        self, path: str, report: Callable[[str], object], stop: asyncio.Event
    ) -> str | None:
        """Open a profile, whose lines have hints from now on; return the name of its report.

        `report` is called with how far it is; it is `None` after `stop`.

        Raises:
            LookupError: there is no profile, or it cannot be read.
        """
        from jaxsight.features.virtual_documents import show as profile

        folder = self.engine.projects.first_folder
        if await self.engine.profiles.open(path, folder, report, stop) is None:
            return None
        for file in self.engine.documents.by_path:
            self.engine.waiting.refresh(file)
        return profile.FUNCTION

    async def drawn_sweep(
        self, path: str, function: str, sizes: Sequence[str], figure: str
    ) -> DrawnSweep:
        """Return a sweep of a function as a panel shows it, or what may be swept."""
        from jaxsight.features.sweeps import drawn_sweep

        return await drawn_sweep(self.engine, path, function, sizes, figure)

    # What the terminal asks

    async def ask(self, question: AgentQuestion) -> AgentAnswer:
        """Return a compact answer about a function; raise `LookupError` if there is none."""
        from jaxsight.features.asking.asking import answer

        async def settle(function: str) -> None:
            await self.background.settle(question.path, only=function)

        return await answer(self.engine, self._fixing, settle, question)

    async def compared(
        self, path: str, function: str, target: str | None, name: str
    ) -> ComparedProgram:
        """Return a function of an open document, to compare another one with it."""
        from jaxsight.features.asking.asking import ComparedProgram

        if function not in self.engine.documents.functions(path):
            await self.background.settle(path, only=function)
        return await ComparedProgram.of(self.engine, path, function, target, name)

    # Choices

    def sets(self, path: str, function: str) -> list[str]:
        """Return the names of a function's example sets; that of an unnamed first one is empty."""
        _, subject = self.engine.documents.find(path, function)
        return [example_set.name for example_set in subject.examples.sets]

    def choose_set(self, path: str, function: str, name: str) -> None:
        """Make another example set the active one; raise `LookupError` if there is none."""
        _, subject = self.engine.documents.find(path, function)
        self.engine.choices.choose_set(path, subject, name)
        self.background.schedule(path)

    def choose_target(self, name: str) -> None:
        """Show kernels for another target; an empty name selects that of the settings."""
        self.engine.choices.choose_target(name)
        self._retry()

    async def show_proposed(self, path: str, function: str, *, hide: bool = False) -> None:
        """Trace a function with proposed inputs, or no longer; raise `LookupError` without any."""
        await proposing.show_proposed(self.engine, path, function, hide=hide)
        self.engine.waiting.refresh(path)
        self.background.schedule(path)

    # Life

    async def restart(self, root: str | None = None) -> None:
        """Restart the tracers and drop all answers."""
        self.engine.outdate()
        await self.engine.projects.restart(root)
        self.background.schedule_all()

    async def aclose(self) -> None:
        """Cancel all background work and end every process."""
        self.background.stop_all()
        await self.installer.aclose()
        await self.until_seen.aclose()
        for extension in self.extensions.values():
            await extension.aclose()
        await self._fixing.aclose()
        await self.engine.aclose()

    def _look_for_decisions(self) -> None:
        """Take up decisions that the user made elsewhere, and links that lead elsewhere now."""
        projects = self.engine.projects
        if projects.trust.changed():
            projects.decided()
            self._outdate()
        if projects.relinked():
            self._outdate()

    def _outdate(self) -> None:
        """Drop all answers, and ask again: settings, interpreters or decisions changed."""
        self.engine.outdate()
        self.background.schedule_all()

    def _retry(self, *, data: bool = True) -> None:
        """Ask again what may have another answer now: files or the target changed."""
        self.engine.retry(data=data)
        self.background.schedule_all()
