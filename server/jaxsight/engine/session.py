"""The engine as its owners see it: documents go in, answers in editor terms come out.

One `Session` lives in a server process (and in each run of the terminal's commands). It knows no LSP and imports no
JAX. All its state is here: the open documents, the projects, the chosen example sets. Nothing in it blocks: what
takes time is awaited, what an edit makes stale is cancelled, and what was known before is shown, marked stale, meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, TypeVar

from jaxsight.compiler.cache import Cache
from jaxsight.compiler.protocol import Compiled
from jaxsight.compiler.targets import Target, UnknownTarget, parse
from jaxsight.engine import contracts, examples, failures, noticing
from jaxsight.engine import kernels as kernel_words
from jaxsight.engine.actions import add_examples, quick_fixes, sourcerize, views
from jaxsight.engine.answering import Answering, Superseded
from jaxsight.engine.answers import (
    Action,
    Completion,
    Finding,
    Hint,
    Hover,
    Lens,
    Shown,
)
from jaxsight.engine.cache import Recent
from jaxsight.engine.compiling import Compiling, Gone, Result, chosen_targets
from jaxsight.engine.diagnostics import report, wanted
from jaxsight.engine.documents import Document, Subject, subject_at
from jaxsight.engine.events import Event, Refresh
from jaxsight.engine.examples import ExampleSet
from jaxsight.engine.fixes.fixing import Fixing
from jaxsight.engine.fixes.verifying import Fix
from jaxsight.engine.functions import Function
from jaxsight.engine.hints import shape_hints
from jaxsight.engine.hover import (
    expression_hover,
    function_hover,
    helper_hover,
    unasked_hover,
)
from jaxsight.engine.kernels import Kernels
from jaxsight.engine.lenses import lenses
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.panel import Panel, drawn
from jaxsight.engine.projects import Projects
from jaxsight.engine.questions import Question, Unasked, ask
from jaxsight.engine.relocate import expressions_at
from jaxsight.engine.schedule import debounce
from jaxsight.engine.sourcerized import Sources, inserted_name, insertion
from jaxsight.engine.text import Edit, Position, Range
from jaxsight.engine.views import Answer, View
from jaxsight.findings.catalogue import ignored
from jaxsight.findings.registry import OF_KERNELS
from jaxsight.tracer import protocol
from jaxsight.tracer.protocol import Observation, Outlined, Sourcerize, Traced
from jaxsight.workers.compilers import Compilers

log = logging.getLogger(__name__)

PATIENCE = 0.15
"""Seconds that hints wait for a fresh trace before they show the stale one: an ordinary trace fits, so nothing flickers."""
COMPILE_PATIENCE = 0.3
"""Seconds that a hover waits for a function's first compile: most small ones take no longer; the others are told of when they are ready."""
HOVER_PATIENCE = 1.5
"""Seconds that a hover waits for a fresh trace when a stale answer is at hand."""

FIX_PATIENCE = 1.0
"""Seconds that code actions wait for fixes that are being tried."""
_TRACED_AGAIN = 3
"""Times that hints wait for what was traced again while it was compiled."""
_OUTLINES = 64
"""Programs that are kept as plain data."""

T = TypeVar("T")


class Session:
    """See the module's docstring. All methods are to be called from one event loop."""

    def __init__(self, projects: Projects | None = None) -> None:
        """`projects` are given by an owner that has them start their tracers before it has the session."""
        self._projects = projects if projects is not None else Projects()
        self.events: asyncio.Queue[Event] = self._projects.events
        self._documents = self._projects.documents
        self._answering = Answering(self._documents)
        self._chosen: dict[tuple[str, str], str] = {}
        self._background: dict[str, asyncio.Task[None]] = {}
        self._made: dict[tuple[str, str, bool], View] = {}
        self._sources = Sources(self._projects.locate)
        self._compiling: Compiling | None = None
        self._fixing = Fixing.of(self._documents, self._projects.of, self._compile)
        self._target = ""
        """The target that a person chose; the settings' while it is empty."""
        self._saved: dict[tuple[str, str], Compiled] = {}
        """What each function was when its file was last saved, by file and name."""
        self._unsaved: set[str] = set()
        self._kept: set[asyncio.Future[Any]] = set()
        self._outlines: Recent[str, tuple[Answer, Outlined]] = Recent(_OUTLINES)
        self._compiled: dict[tuple[str, str], tuple[Answer, Result]] = {}
        """The last result of each function, by file and name, to be shown while the next one is made."""

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool = True,
        editor_python: Mapping[str, str] | None = None,
        editor_by_root: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """Take the editor's folders and settings; what changed takes effect at once.

        Args:
            roots: the workspace's folders.
            editor: the editor's settings as they came, unchecked.
            trusted: whether user code may run.
            editor_python: the interpreter that the editor chose, by folder.
            editor_by_root: whole settings of folders that have some of their own, by folder; they stand in place of `editor`.
        """
        if self._projects.configure(
            roots,
            editor,
            trusted=trusted,
            editor_python=editor_python or {},
            editor_by_root=editor_by_root or {},
        ):
            self._answering.clear()
            if self._compiling is not None:
                self._compiling.forget()
            self._refresh_all()

    def open(self, path: str, text: str) -> None:
        """A document is open; its functions are traced in the background from now on."""
        self._documents[path] = Document(path, text)
        self._schedule(path)

    def change(self, path: str, text: str) -> None:
        """The document's whole text is now `text`."""
        self._unsaved.add(path)
        self._fixing.stop(path)
        self._documents[path].change(text)
        self._schedule(path)

    def saved(self, path: str) -> None:
        """The document is on disk as it is: changes are told against what its functions are now."""
        self._unsaved.discard(path)
        for key, (_, result) in self._compiled.items():
            if key[0] == path and isinstance(result.outcome, Compiled):
                self._saved[key] = result.outcome
        if path in self._documents:
            self.events.put_nowait(Refresh(path))

    def close(self, path: str) -> None:
        self._documents.pop(path, None)
        if (task := self._background.pop(path, None)) is not None:
            task.cancel()
        self._answering.forget(path)
        self._fixing.stop(path)
        for unit in [unit for unit in self._made if unit[0] == path]:
            del self._made[unit]
        for key in [key for key in self._compiled if key[0] == path]:
            del self._compiled[key]
            self._saved.pop(key, None)
        self._unsaved.discard(path)
        self._projects.closed(path)

    def files_changed(self, paths: Sequence[str]) -> None:
        """Files changed on disk (settings, imported modules): look again at everything that is open."""
        if self._projects.files_changed(paths):
            self._answering.clear()
        self._refresh_all()

    async def hover(self, path: str, position: Position) -> Hover | None:
        """What stands at the position: a function with example inputs, or an expression that was seen in a trace."""
        document = self._documents.get(path)
        if document is None:
            return None
        subjects = self._subjects(document)
        subject = subject_at(subjects, position)
        if subject is not None and position in subject.name_range:
            return await self._function_hover(document, subject)
        found = document.module.function_at(position)
        if found is not None and position in found[1].name_range.shifted(found[0].first_line):
            return await self._helper_hover(document, *found)
        chunk = document.module.chunk_at(position)
        if chunk is None:
            return None
        places = expressions_at(chunk, position)
        if not places and chunk.broken is None:
            return None
        stale: Hover | None = None
        for candidate in _by_closeness(subjects, subject):
            if not self._may_reach(document, candidate, chunk):
                continue
            view = await self._view(document, candidate, HOVER_PATIENCE)
            if not isinstance(view, View):
                continue
            for place in places or view.around(position):
                observation = view.observed.get(place)
                if observation is not None and observation.values:
                    source = view.module.slice_text(place)
                    hover = expression_hover(
                        source, place, observation, view, self._became(view, place)
                    )
                    if not view.stale:
                        return hover
                    stale = stale or hover
                    break
        return stale

    async def hints(
        self, path: str, range: Range | None = None, *, wait: bool = False
    ) -> list[Hint]:
        """Shape hints in a range, the whole file by default.

        Answers within `PATIENCE` with what is known, stale parts marked; a `Refresh` follows when there is more. With
        `wait` it answers when all is fresh.
        """
        document = self._documents.get(path)
        if document is None:
            return []
        wanted = self._projects.of(path).settings.inlay_hints
        if not (wanted.shapes or wanted.kernels or wanted.barriers):
            return []
        views = await self._views(document, None if wait else PATIENCE)
        if wait and (wanted.kernels or wanted.barriers):
            views = await self._compiled_views(document)
        # Half of a name that someone is typing is an error: what stands around it keeps its hints.
        views += [last for view in views if (last := self._last_traced(document, view)) is not None]
        shapes = self._shape_hints(document, views, range) if wanted.shapes else []
        kernels = [
            hint
            for hint in self._all_kernel_hints(views, wanted.kernels, wanted.barriers)
            if range is None or range.touches(hint.range)
        ]
        return sorted([*shapes, *kernels], key=lambda hint: (hint.range, hint.label))

    async def _compiled_views(self, document: Document) -> list[View]:
        """All views, once what they show is compiled. A tracer that ended meanwhile has its functions traced again, a few times at most."""
        for _ in range(_TRACED_AGAIN):
            views = await self._views(document, None)
            for view in views:
                await self._result(view)
            again = await self._views(document, None)
            if {id(view.answer) for view in again} == {id(view.answer) for view in views}:
                break
        return again

    def _shape_hints(
        self, document: Document, views: Sequence[View], range: Range | None
    ) -> list[Hint]:
        hints: dict[Range, Hint] = {}
        fresh: set[Range] = set()
        for view in sorted(views, key=lambda view: view.stale):
            own = view.subject_range
            targets: list[tuple[Range, Observation]] = []
            for place, observation in view.observed.items():
                if observation.kind != "target" or (range is not None and not range.touches(place)):
                    continue
                if not view.stale:
                    fresh.add(place)
                elif place in fresh:
                    continue
                if place in hints and (view.stale or place.start not in own):
                    continue
                if document.module.slice_text(place) == "_":
                    continue
                targets.append((place, observation))
            for hint in shape_hints(targets, view):
                hints[hint.range] = hint
        return list(hints.values())

    def _all_kernel_hints(
        self, views: Sequence[View], totals: bool, barriers: bool
    ) -> Iterator[Hint]:
        """A line is told of by the function that it stands in, if that was traced, else by the first that reaches it."""
        told: set[Position] = set()
        for view in views:
            for hint in self._kernel_hints(view, totals, barriers):
                at = hint.range.start
                others = (other.subject_range for other in views if other is not view)
                if at in view.subject_range or not (at in told or any(at in one for one in others)):
                    told.add(at)
                    yield hint

    def _kernel_hints(self, view: View, totals: bool, barriers: bool) -> Iterator[Hint]:
        """What is known of a function's kernels on the first target; of its last text, while there is no more."""
        if not (totals or barriers) or not isinstance(view.answer.reply, Traced):
            return
        found = self._last_kernels(view)
        if found is not None:
            before = self._saved.get((view.answer.question.path, view.subject.name))
            yield from kernel_words.hints(found, before, totals=totals, barriers=barriers)

    def _last_kernels(self, view: View) -> Kernels | None:
        targets = self._targets(view.answer.question.path)
        if not targets or self._compiling is None:
            return None
        result = self._compiling.known(view.answer, targets[0])
        if result is not None:
            return Kernels.of(view, result)
        last = self._compiled.get((view.answer.question.path, view.subject.name))
        if last is None or last[1].target != targets[0]:
            return None
        return Kernels.of(View(last[0], view.module, None, view.subject), last[1])

    def _became(self, view: View, place: Range) -> str:
        """What became of an expression on the first target, as far as that is known."""
        found = self._last_kernels(view)
        if found is None or found.view.stale != view.stale:
            return ""
        return kernel_words.expression_words(found, place)

    def _targets(self, path: str) -> tuple[Target, ...]:
        project = self._projects.of(path)
        settings = project.settings
        return chosen_targets(self._target or settings.target, settings.targets, project.jax)

    async def _broken_contracts(self, view: View, patience: float | None) -> list[Finding]:
        """What does not hold of what a function's docstring expects; a compile that takes longer is told of when it is done."""
        found: list[Finding] = []
        for expect in contracts.contracts(view):
            try:
                target = contracts.target_of(expect)
            except UnknownTarget as error:
                found.append(contracts.wrong_target(view, expect, error))
                continue
            task = asyncio.ensure_future(self._result(view, target))
            done, _ = await asyncio.wait([task], timeout=patience)
            if not done:
                self._keep(task, view.answer.question.path)
            elif (result := task.result()) is not None:
                found += contracts.findings(view, expect, result)
        return found

    async def _noticed(
        self, view: View, codes: Sequence[str], patience: float | None, *, compiled: bool
    ) -> list[Finding]:
        """What the traced program and the first target's kernels show; what takes longer is told of when it is known."""
        if not isinstance(view.answer.reply, Traced):
            return []
        outlined = await self._within(self._outline(view), patience, view)
        if outlined is None:
            return []
        found = list(noticing.of_program(view, outlined, codes))
        if not compiled or view.stale or not OF_KERNELS.keys() & set(codes):
            return found
        result = await self._within(self._result(view), patience, view)
        if result is not None:
            settings = self._projects.of(view.answer.question.path).settings
            here = settings.ignored_on(result.target)
            wanted_here = [code for code in codes if not ignored(code, here)]
            found += noticing.of_kernels(view, outlined, result, wanted_here)
        return found

    async def _within(
        self, work: Coroutine[None, None, T | None], patience: float | None, view: View
    ) -> T | None:
        """What comes of some work within `patience`; it goes on, and a refresh follows."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait([task], timeout=patience)
        if done:
            return task.result()
        self._keep(task, view.answer.question.path)
        return None

    async def _outline(self, view: View) -> Outlined | None:
        """The traced program as plain data; nothing when it is gone, or of an older text and not known."""
        key = view.answer.question.key
        known = self._outlines.get(key)
        if known is not None and known[0] is view.answer:
            return known[1]
        if view.stale:
            return None
        project = self._projects.of(view.answer.question.path)
        outlined = await project.outline(view.answer)
        if outlined is None:
            # A tracer keeps few of its traces: trace again, and ask at once.
            self._answering.drop(view.answer.question)
            try:
                outlined = await project.outline(
                    await self._ask(view.answer.question, waiting=False)
                )
            except Superseded:
                return None
        if outlined is not None:
            self._outlines.put(key, (view.answer, outlined))
        return outlined

    def _compile(self) -> Compiling:
        if self._compiling is None:
            settings = self._projects.any_settings
            self._compiling = Compiling(
                self.events,
                Compilers(
                    memory=settings.memory_limit,
                    deadline=settings.timeouts.compile,
                    remote_python=settings.compiler.remote_python,
                ),
                Cache(limit=settings.cache.size),
            )
        return self._compiling

    async def _result(self, view: View, target: Target | None = None) -> Result | None:
        """What a function is on a target, the first one by default; nothing when it was not traced."""
        question = view.answer.question
        project = self._projects.of(question.path)
        if not isinstance(view.answer.reply, Traced) or project.interpreter is None:
            return None
        targets = self._targets(question.path)
        if target is None:
            if not targets:
                return None
            target = targets[0]
        answer = view.answer
        try:
            result = await self._compile().get(
                answer, target, project.interpreter.path, project.lower
            )
        except Gone:
            # A tracer keeps few of its traces: trace again, and lower at once.
            self._answering.drop(question)
            try:
                answer = await self._ask(question, waiting=False)
                result = await self._compile().get(
                    answer, target, project.interpreter.path, project.lower
                )
            except (Gone, Superseded):
                return None
        if target in targets[:1] and isinstance(result.outcome, Compiled):
            key = question.path, view.subject.name
            self._compiled[key] = (answer, result)
            if question.path not in self._unsaved or key not in self._saved:
                self._saved[key] = result.outcome
        return result

    @property
    def compiles(self) -> int:
        """How many programs were compiled: those that a cache had are not among them."""
        return self._compiling.compilers.compiled if self._compiling is not None else 0

    async def kernels(
        self, path: str, function: str, target: str | None = None, set_name: str | None = None
    ) -> tuple[View, Result]:
        """What a function is on a target, for the terminal.

        Raises:
            LookupError: no such function or target, or it is not traced; the message says which.
        """
        for _ in range(2):  # a tracer may have gone meanwhile
            view = await self.view(path, function, set_name)
            if not isinstance(view.answer.reply, Traced):
                words = failures.summary(view.answer.reply, view)
                raise LookupError(f"{function} cannot be traced: {words}")  # noqa: TRY004
            try:
                chosen = parse(target) if target else None
            except UnknownTarget as error:
                raise LookupError(str(error)) from error
            result = await self._result(view, chosen)
            if result is not None:
                return view, result
        raise LookupError(f"{function} cannot be lowered: the tracer ended twice")

    async def panel(self, path: str, where: Position | str) -> Panel | None:
        """All that a panel shows of the function at a position or of a name; nothing where there is none with example inputs."""
        document = self._documents.get(path)
        if document is None:
            return None
        subjects = self._subjects(document)
        subject = _named(subjects, where) if isinstance(where, str) else subject_at(subjects, where)
        if subject is None or (chosen := self._chosen_set(document, subject)) is None:
            return None
        sets = tuple(each.name for each in subject.examples.sets)
        try:
            view, result = await self.kernels(path, subject.name)
        except LookupError as error:
            target = next((each.name for each in self._targets(path)), "")
            return Panel(
                path, subject.name, subject.range, chosen.name, sets, target, trouble=str(error)
            )
        found = drawn(view, result, self._saved.get((path, subject.name)))
        return Panel(
            path,
            subject.name,
            view.subject_range,
            view.answer.question.set.name,
            sets,
            result.target.name,
            view.stale,
            None if isinstance(found, str) else found,
            found if isinstance(found, str) else "",
        )

    async def findings(
        self,
        path: str,
        *,
        patience: float | None = None,
        kernels: bool | None = None,
        fixes: bool = False,
    ) -> list[Finding]:
        """Everything to report about a file: its example inputs, the errors of its traces, or its settings.

        Args:
            patience: seconds to wait for fresh traces; all of them when not given.
            kernels: whether functions are compiled for what only their kernels tell; as for hints by default.
            fixes: whether to begin to try fixes for what is found, as an editor's findings always do.
        """
        if (settings := self._projects.settings_findings(path)) is not None:
            return settings
        document = self._documents.get(path)
        if document is None:
            return []
        subjects = self._subjects(document)
        views = await self._views(document, patience)
        project = self._projects.of(path)
        codes = wanted(project.settings, _below(project.root, path))
        owners = {f: view for view in views for f in failures.findings(view)}
        found = [*owners, *noticing.of_text(document.module)]
        hints = project.settings.inlay_hints
        compiled = hints.kernels or hints.barriers if kernels is None else kernels
        for view in views:
            found += await self._broken_contracts(view, patience)
            noticed = await self._noticed(view, codes, patience, compiled=compiled)
            owners |= dict.fromkeys(noticed, view)
            found += noticed
        for finding in found:
            if finding not in owners:
                around = [view for view in views if finding.range.start in view.subject_range]
                owners.update((finding, view) for view in around[:1])
        reported = report(
            document.module,
            subjects,
            found,
            project.settings,
            _below(project.root, path),
            complete=kernels is True and len(views) == len(subjects),
        )
        if (kernels is None or fixes) and document.module is self._module(path):
            targets = self._targets(path) if compiled else ()
            target = targets[0] if targets else None
            pairs = [(owners[each], each) for each in reported if each in owners]
            self._fixing.start(path, pairs, target)
        return reported

    async def fixes(self, path: str) -> list[Fix]:
        """What is proved to fix a file's findings, kernels' too; for the terminal."""
        await self.findings(path, kernels=True, fixes=True)
        document = self._documents.get(path)
        if document is None:
            return []
        return await self._fixing.fixes(path, document.module, None, None)

    def _module(self, path: str) -> Module | None:
        document = self._documents.get(path)
        return document.module if document is not None else None

    async def lenses(self, path: str) -> list[Lens]:
        """The example set in use above each function that has any."""
        document = self._documents.get(path)
        if document is None or not self._projects.of(path).settings.code_lens:
            return []
        return [
            lens
            for subject in self._subjects(document)
            for lens in lenses(path, subject, self._chosen_set(document, subject))
        ]

    async def actions(self, path: str, range: Range) -> list[Action]:
        """Code actions for a range: fixes as far as they are proved within a moment."""
        document = self._documents.get(path)
        if document is None:
            return []
        module = document.module
        fixes = await self._fixing.fixes(path, module, range, FIX_PATIENCE)
        actions = list(quick_fixes(fixes)) if document.module is module else []
        subjects = self._subjects(document)
        actions += add_examples(document.module, subjects, range)
        subject = subject_at(subjects, range.start)
        if subject is not None and self._chosen_set(document, subject) is not None:
            question = self._question(document, subject)
            known = self._answering.known(question) if isinstance(question, Question) else None
            reply = known.reply if known is not None else None
            actions += sourcerize(path, document.module, subject, range, reply)
            actions += views(path, subject, reply)
        return actions

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        """The edits of an action that has some `pending`: the source of a function, put below it.

        Raises:
            LookupError: there is no such function, or no source that could be verified; the message says why.
        """
        document, subject = self._find(path, pending)
        name = inserted_name(document.module, pending)
        shown = await self.show(path, pending, Sourcerize(name=name))
        document, subject = self._find(path, pending)
        return insertion(document.module, subject, shown.text)

    async def completions(self, path: str, position: Position) -> list[Completion]:
        """Proposals inside a section of example inputs; nothing elsewhere."""
        document = self._documents.get(path)
        if document is None:
            return []
        found = document.module.function_at(position)
        if found is None:
            return []
        chunk, function = found
        proposals = examples.complete(
            function, position.up(chunk.first_line), self._projects.of(path).outside.sizes
        )
        return [proposal.shifted(chunk.first_line) for proposal in proposals]

    async def show(self, path: str, function: str, what: str | Sourcerize = "jaxpr") -> Shown:
        """A virtual document about a function: its `jaxpr`, the function written as source, or what an interpreter makes of it.

        Args:
            what: `jaxpr`, `stablehlo`, `hlo` or `kernels`, a way to write source, or the name of an interpreter in the user's environment.

        Raises:
            LookupError: there is no such function with example inputs, it cannot be traced, the interpreter fails, or there is no source
                that could be verified (`NotSourcerized`); the message says which.
        """
        if what in kernel_words.DOCUMENTS:
            view, result = await self.kernels(path, function)
            return kernel_words.document(view, result, str(what))
        view = await self.view(path, function)
        reply = view.answer.reply
        if not isinstance(reply, Traced):
            words = failures.summary(reply, view)
            raise LookupError(f"{function} cannot be traced: {words}")  # noqa: TRY004
        project = self._projects.of(path)
        if isinstance(what, Sourcerize):
            return await self._sources.get(view, what, project.sourcerize)
        target = self._targets(path)[0]
        platform = target.platform if what == protocol.STABLEHLO else ""
        shown = await project.show(view.answer, what, platform)
        if shown is None:
            self._answering.drop(view.answer.question)
            return await self.show(path, function, what)
        if not isinstance(shown, protocol.Shown):
            if platform and isinstance(shown, protocol.Failed):
                words = f"lowered for {target.short}: {shown.failure.message}"
            else:
                words = f"shown by {what}: {failures.of_interpreter(shown)}"
            raise LookupError(f"{function} cannot be {words}")  # noqa: TRY004
        return view.shown(f"{function}.{what}", shown)

    async def view(self, path: str, function: str, set_name: str | None = None) -> View:
        """The whole answer about one function, for the terminal.

        Raises:
            LookupError: no such function, no example inputs, no such set, or not traceable; the message says which.
        """
        document, subject = self._find(path, function)
        if set_name is not None:
            self.choose_set(path, function, set_name)
        view = await self._view(document, subject, None)
        if isinstance(view, Unasked):
            raise LookupError(f"{function} is not traced: {view.reason}")  # noqa: TRY004
        return view

    async def interpreter(self, path: str) -> str:
        """The interpreter of the project that holds a path.

        Raises:
            LookupError: there is none; the message says why.
        """
        project = self._projects.of(path)
        if project.interpreter is None:
            raise LookupError(project.problem or "no interpreter with JAX was found")
        return project.interpreter.path

    def functions(self, path: str) -> list[str]:
        """The qualified names of the functions that have example inputs."""
        document = self._documents.get(path)
        return [] if document is None else [s.name for s in self._subjects(document)]

    def sets(self, path: str, function: str) -> list[str]:
        """The names of a function's example sets; the unnamed first one is the empty string."""
        _, subject = self._find(path, function)
        return [s.name for s in subject.examples.sets]

    def choose_set(self, path: str, function: str, name: str) -> None:
        """Use another example set for a function from now on.

        Raises:
            LookupError: no such function or set.
        """
        names = self.sets(path, function)
        if name not in names:
            raise LookupError(
                f"{function} has no example inputs named {name!r}; it has {', '.join(map(repr, names))}"
            )
        self._chosen[path, function] = name
        self._schedule(path)

    def choose_target(self, name: str) -> None:
        """Show kernels for another target from now on; the settings' again when it is empty.

        Raises:
            LookupError: there is no such target; the message has the nearest names.
        """
        try:
            self._target = parse(name).name if name else ""
        except UnknownTarget as error:
            raise LookupError(str(error)) from error
        self._refresh_all()

    async def restart(self, root: str | None = None) -> None:
        """Start the tracers anew, forgetting failures and answers."""
        self._answering.clear()
        await self._projects.restart(root)
        self._refresh_all()

    async def aclose(self) -> None:
        """End all background work and every process."""
        for task in self._background.values():
            task.cancel()
        for path in list(self._documents):
            self._answering.cancel(path)
        await self._fixing.aclose()
        if self._compiling is not None:
            await self._compiling.aclose()
        await self._projects.aclose()

    def _find(self, path: str, function: str) -> tuple[Document, Subject]:
        document = self._documents.get(path)
        if document is None:
            raise LookupError(f"{path} is not open")
        for subject in self._subjects(document):
            if subject.name == function:
                if subject.examples.sets:
                    return document, subject
                raise LookupError(f"the example inputs of {function} are not understood")
        known = {f.qualname for _, f in document.module.functions}
        if function in known:
            raise LookupError(
                f"{function} has no example inputs: add a section `Example inputs:` to its docstring"
            )
        raise LookupError(f"there is no function {function} in {path}")

    def _subjects(self, document: Document) -> tuple[Subject, ...]:
        return document.subjects(self._projects.of(document.path).outside)

    def _may_reach(self, document: Document, subject: Subject, chunk: ModuleChunk) -> bool:
        """Whether the subject's trace may have come to a chunk; nothing is traced to find out."""
        question = self._question(document, subject)
        return isinstance(question, Unasked) or any(
            member.first_line == chunk.first_line for member in question.slice.members
        )

    def _chosen_set(self, document: Document, subject: Subject) -> ExampleSet | None:
        sets = subject.examples.sets
        name = self._chosen.get((document.path, subject.name))
        return next((s for s in sets if s.name == name), sets[0] if sets else None)

    def _question(self, document: Document, subject: Subject) -> Question | Unasked:
        chosen = self._chosen_set(document, subject)
        if chosen is None:
            return Unasked("its example inputs have errors")
        project = self._projects.of(document.path)
        if project.untrusted:
            return Unasked("the workspace is not trusted, so no code of it runs")
        return ask(document, subject, chosen, root=project.root, environment=project.environment)

    async def _helper_hover(
        self, document: Document, chunk: ModuleChunk, function: Function
    ) -> Hover | None:
        range = function.name_range.shifted(chunk.first_line)
        subjects = self._subjects(document)
        stale: Hover | None = None
        for subject in _by_closeness(subjects, subject_at(subjects, range.start)):
            if not self._may_reach(document, subject, chunk):
                continue
            view = await self._view(document, subject, HOVER_PATIENCE)
            if not isinstance(view, View):
                continue
            hover = helper_hover(function, range, view, chunk.first_line)
            if hover is not None and not hover.stale:
                return hover
            stale = stale or hover
        return stale

    async def _function_hover(self, document: Document, subject: Subject) -> Hover:
        view = await self._view(document, subject, HOVER_PATIENCE)
        if isinstance(view, Unasked):
            return unasked_hover(subject, view.reason)
        return function_hover(subject, view, await self._target_words(view))

    async def _target_words(self, view: View) -> str:
        """What the function is on each target, as far as a moment's wait tells."""
        if not isinstance(view.answer.reply, Traced) or view.stale:
            return ""
        targets = self._targets(view.answer.question.path)
        asked = [asyncio.ensure_future(self._result(view, each)) for each in targets]
        if not asked:
            return ""
        # After an edit the jaxpr is what is waited for: kernels follow in the hints.
        edited = (view.answer.question.path, view.subject.name) in self._compiled
        done, pending = await asyncio.wait(asked, timeout=0 if edited else COMPILE_PATIENCE)
        results = [task.result() for task in asked if task in done]
        words = kernel_words.target_rows([each for each in results if each is not None])
        waiting = [
            target.name for target, task in zip(targets, asked, strict=True) if task in pending
        ]
        if waiting:
            for task in pending:
                self._keep(task, view.answer.question.path)
            words += f"\n\n*compiling for {', '.join(waiting)}…*"
        return words.strip()

    def _keep(self, task: asyncio.Future[T], path: str) -> None:
        """Let a compile that somebody asked for go on, and tell when it is done."""
        self._kept.add(task)

        def ended(done: asyncio.Future[T]) -> None:
            self._kept.discard(done)
            if not done.cancelled() and done.exception() is None:
                self.events.put_nowait(Refresh(path))

        task.add_done_callback(ended)

    async def _view(
        self, document: Document, subject: Subject, patience: float | None
    ) -> View | Unasked:
        """The answer about a subject as it stands in the text now; a stale one when `patience` runs out and there is one."""
        module = document.module
        question = self._question(document, subject)
        chosen = self._chosen_set(document, subject)
        latest = self._answering.latest(document.path, subject.name, chosen.name if chosen else "")
        if isinstance(question, Unasked):
            return self._seen(latest, module, None, subject) if latest is not None else question
        answer: Answer | None = None
        try:
            asking = self._ask(question, waiting=True)
            if patience is None or latest is None:
                answer = await asking
            else:
                answer = await asyncio.wait_for(asking, patience)
        except TimeoutError:
            answer = latest
        except Superseded:
            answer = latest
            standing = _named(self._subjects(document), subject.name)
            if answer is None and document.module is module and standing is not None:
                # Not the text but the settings changed: the same question is another one now.
                return await self._view(document, standing, patience)
        if answer is None:
            return Unasked("its text is being edited")
        return self._seen(answer, module, question, subject)

    async def _views(self, document: Document, patience: float | None) -> list[View]:
        """What is known of every subject of a document, after at most `patience` seconds of waiting for fresh answers."""
        module = document.module
        subjects = self._subjects(document)
        questions = [(subject, self._question(document, subject)) for subject in subjects]
        unknown = [
            q for _, q in questions if isinstance(q, Question) and self._answering.known(q) is None
        ]
        if unknown:
            tasks = [asyncio.ensure_future(self._ask(q, waiting=False)) for q in unknown]
            try:
                _, pending = await asyncio.wait(tasks, timeout=patience)
            except asyncio.CancelledError:
                await _given_up(tasks)
                raise
            for task in tasks:
                if task in pending:
                    task.cancel()
                elif (
                    not task.cancelled()
                    and (error := task.exception()) is not None
                    and not isinstance(error, Superseded)
                ):
                    raise error
        views: list[View] = []
        for subject, question in questions:
            answer = self._answering.known(question) if isinstance(question, Question) else None
            now = question if isinstance(question, Question) else None
            if answer is None:
                chosen = self._chosen_set(document, subject)
                answer = self._answering.latest(
                    document.path, subject.name, chosen.name if chosen else ""
                )
            if answer is not None:
                views.append(self._seen(answer, module, now, subject))
        return views

    def _last_traced(self, document: Document, view: View) -> View | None:
        """The last trace of a function that can now not be traced, seen in the text of now."""
        if isinstance(view.answer.reply, Traced):
            return None
        question = view.answer.question
        last = self._answering.traced(question.path, view.subject.name, question.set.name)
        return None if last is None else self._seen(last, document.module, None, view.subject)

    def _seen(self, answer: Answer, module: Module, now: Question | None, subject: Subject) -> View:
        """The answer in the module; the view of a moment ago where nothing changed, for moving spans takes time."""
        unit = answer.question.path, subject.name, now is None
        made = self._made.get(unit)
        if made is None or not made.still(answer, module, now):
            made = View(answer, module, now, subject)
            self._made[unit] = made
        return made

    async def _ask(self, question: Question, *, waiting: bool) -> Answer:
        return await self._answering.get(
            question, self._projects.of(question.path).trace, waiting=waiting
        )

    def _refresh_all(self) -> None:
        for path in self._documents:
            self._schedule(path)

    def _schedule(self, path: str) -> None:
        if (task := self._background.get(path)) is not None:
            task.cancel()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._background[path] = loop.create_task(self._trace_all(path), name=f"trace {path}")

    async def _trace_all(self, path: str) -> None:
        """After a pause in the typing, trace what is not known and tell the owner."""
        await asyncio.sleep(debounce(self._answering.seconds(path)))
        document = self._documents.get(path)
        if document is None:
            return
        for subject in self._subjects(document):
            question = self._question(document, subject)
            if isinstance(question, Unasked) or self._answering.known(question) is not None:
                continue
            try:
                await self._ask(question, waiting=False)
            except Superseded:
                return
            except Exception:
                log.exception("tracing %s of %s in the background", subject.name, path)
                return
            self.events.put_nowait(Refresh(path))
        self.events.put_nowait(Refresh(path))
        await self._compile_all(path)

    async def _compile_all(self, path: str) -> None:
        """Compile what is traced for the first target, one function after another, where that is shown."""
        document = self._documents.get(path)
        wanted = self._projects.of(path).settings.inlay_hints
        if document is None or not (wanted.kernels or wanted.barriers):
            return
        for view in await self._views(document, None):
            targets = self._targets(path)
            if view.stale or not targets or self._documents.get(path) is not document:
                continue
            if self._compile().known(view.answer, targets[0]) is not None:
                continue
            try:
                result = await self._result(view)
            except Exception:
                log.exception("compiling %s of %s in the background", view.subject.name, path)
                return
            if result is not None:
                self.events.put_nowait(Refresh(path))


def _named(subjects: Sequence[Subject], name: str) -> Subject | None:
    return next((subject for subject in subjects if subject.name == name), None)


async def _given_up(tasks: Sequence[asyncio.Task[Answer]]) -> None:
    """End tasks whose answers nobody wants any more, errors included."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _below(root: str, path: str) -> PurePosixPath:
    """The path as patterns of settings see it: from the root, with `/` on every system."""
    return PurePosixPath(os.path.relpath(path, root).replace(os.sep, "/"))


def _by_closeness(subjects: Sequence[Subject], own: Subject | None) -> list[Subject]:
    """The subject that holds the cursor first, then the others: a helper's expressions were seen in their traces."""
    return [*([own] if own is not None else []), *(s for s in subjects if s is not own)]
