"""The engine as its owners see it: documents go in, answers in editor terms come out.

One `Session` lives in a server process (and in each run of the terminal's commands). It does not
depend on LSP and does not import JAX. All its state is here: the open documents, the projects, the
active example sets. Nothing in it blocks: slow work is awaited, work that an edit makes obsolete is
cancelled, and earlier answers are shown meanwhile, marked as stale.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import os
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, TypeVar

from jaxsight.events import Consent, Event, Refresh
from jaxsight.examples import ExampleSet
from jaxsight.examples.notation.contracts import Expect
from jaxsight.features import caveats, contracts, virtual_documents
from jaxsight.features import kernel_report as kernel_words
from jaxsight.features.caveats import Completeness
from jaxsight.features.code_actions import add_examples, quick_fixes, run_marks, sourcerize, views
from jaxsight.features.completion import complete
from jaxsight.features.findings import failures, nested
from jaxsight.features.findings import run_rules as noticing
from jaxsight.features.findings.report import one_a_line, report, wanted
from jaxsight.features.fixes.scheduler import Fixing
from jaxsight.features.fixes.verifier import Fix
from jaxsight.features.hover import (
    expression_hover,
    function_hover,
    helper_hover,
    unasked_hover,
)
from jaxsight.features.inlay_hints.shapes import shape_hints
from jaxsight.features.kernel_report import Kernels
from jaxsight.features.lenses import lenses
from jaxsight.features.model import Action, Completion, Hint, Hover, Lens, Shown
from jaxsight.features.panel import Panel, drawn
from jaxsight.features.sourcerized import INSERTED_STYLE, Sources, inserted_name, insertion
from jaxsight.features.stale_marks import marked
from jaxsight.features.uncompiled import Uncompiled
from jaxsight.features.verification import Sliced, Verification, Verified
from jaxsight.lru import Recent
from jaxsight.projects.projects import Projects
from jaxsight.projects.python_discovery import Interpreter
from jaxsight.queries import tracing
from jaxsight.queries.background import Aside, Turns
from jaxsight.queries.compile_cache import Compiling, Gone, Result, chosen_targets
from jaxsight.queries.disk_cache import Cache
from jaxsight.queries.documents import Document, Subject, module_name, subject_at
from jaxsight.queries.located_answer import Answer, View
from jaxsight.queries.query import Question, Unasked, ask
from jaxsight.queries.schedule import debounce
from jaxsight.queries.trace_cache import Answering, Superseded
from jaxsight.rules import RULES
from jaxsight.rules.finding import Finding
from jaxsight.rules.jx102_folded_while_compiling import rule as folded_while_compiling
from jaxsight.rules.jx413_miscompiled import rule as miscompiled
from jaxsight.rules.selection import ignored
from jaxsight.source.functions import Function
from jaxsight.source.module import Module, ModuleChunk
from jaxsight.source.relocate import expressions_at
from jaxsight.source.slicing.caveat import Caveat
from jaxsight.source.text import Edit, Position, Range
from jaxsight.targets.target import Target, UnknownTarget, parse
from jaxsight.trust.decisions import SSH
from jaxsight.trust.words import shown_path
from jaxsight.wire.messages import replies
from jaxsight.wire.messages.compiling import Compiled, Folding
from jaxsight.wire.messages.replies import Failed, Outlined, Traced
from jaxsight.wire.messages.requests import PROGRAM, STABLEHLO, SourceOptions
from jaxsight.wire.observations import Observation
from jaxsight.workers.compilers import Compilers, Trouble
from jaxsight.workers.results import Died

log = logging.getLogger(__name__)

PATIENCE = 0.15
"""Seconds that hints wait for a new trace before they show the stale one.

Most traces take less, so nothing flickers.
"""
COMPILE_PATIENCE = 0.3
"""Seconds that a hover waits for a function's first compile.

Most small functions take less; a refresh follows for the others.
"""
HOVER_PATIENCE = 1.5
"""Seconds that a hover waits for a new trace if there is a stale answer."""

CONTRACT_PATIENCE = 0.3
"""Seconds that an editor's findings wait for contracts, once all other findings are known.

The same applies to targets on other machines, because a host may be down.
"""
ERRORS_HOLD = 60.0
"""Seconds after which a contract that could not be checked is tried again."""
FIX_PATIENCE = 1.0
"""Seconds that code actions wait for fixes that are being verified."""
_TRACED_AGAIN = 3
"""Number of times that hints wait for functions that were traced again while they were compiled."""
_READERS = 3
"""Number of large texts that are parsed at the same time."""
_OUTLINES = 64
"""Number of programs that are kept as plain data."""

T = TypeVar("T")


@dataclass(slots=True)
class _Held:
    """A compile for a contract, or on another machine.

    `ended` is when it failed with an error that may be temporary, otherwise infinity.
    """

    answer: Answer
    task: asyncio.Task[Result | None]
    ended: float = math.inf


class Session:
    """See the module's docstring. All methods must be called from one event loop."""

    def __init__(self, projects: Projects | None = None) -> None:
        """Create a session; pass `projects` to start their tracers before the session exists."""
        self._projects = projects if projects is not None else Projects()
        self.events: asyncio.Queue[Event] = self._projects.events
        self._documents: dict[str, Document] = {}
        self._projects.documents = self._documents
        self._answering = Answering(self._documents)
        self._aside = Aside()
        self._readers = Aside(_READERS)
        self._turns = Turns()
        self._chosen: dict[tuple[str, str], str] = {}
        self._background: dict[str, asyncio.Task[None]] = {}
        self._made: dict[tuple[str, str, str], View] = {}
        self._sources = Sources(self._projects.locate)
        self._compiling: Compiling | None = None
        self._fixing = Fixing.of(
            self._documents, self._projects.of, self._compile, self._aside, self._refresh
        )
        self._target = ""
        """The target that the user selected; empty for that of the settings."""
        self._saved: dict[tuple[str, str], Compiled] = {}
        """The compiled program of each function when its file was last saved, by file and name."""
        self._unsaved: set[str] = set()
        self._measuring: dict[tuple[str, str], tuple[Answer, asyncio.Future[Folding | None]]] = {}
        """By file and function: the answer whose constant folding is being measured."""
        self._kept: set[asyncio.Future[Any]] = set()
        self._held: Recent[tuple[str, str], _Held] = Recent(_OUTLINES)
        """Compiles for contracts and other machines, running or done, by question and target."""
        self._outlines: Recent[str, tuple[Answer, Outlined]] = Recent(_OUTLINES)
        self._compiled: dict[tuple[str, str], tuple[Answer, Result]] = {}
        """The last result of each function, by file and name, shown until the next one is ready."""
        self._refused: dict[tuple[str, str], tuple[Answer, Result]] = {}
        """Results of functions that were last not compiled for the first target."""

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
        if self._projects.configure(
            roots,
            editor,
            trusted=trusted,
            editor_python=editor_python or {},
            editor_by_root=editor_by_root or {},
        ):
            self._begin_again()

    async def decide(self, consent: Consent, answer: str | None) -> None:
        """Take the user's answer to a question of `events`; it takes effect at once.

        `None` means that there is no answer.
        """
        trust = self._projects.trust
        if trust.decide(consent, answer):
            self._projects.decided()
            self._begin_again()
            await asyncio.to_thread(trust.keep, consent, answer)
            if trust.changed() and self._projects.decided():
                self._begin_again()

    def ask_again(self, folder: str | None = None) -> bool:
        """Ask the user again for all pending decisions, or for those about one folder.

        Returns whether there are any.
        """
        self._look_for_decisions()
        return self._projects.ask_again(folder)

    def remedy(self, folder: str, what: str) -> str:
        """Return an instruction that lets a folder reach something, as an imperative clause."""
        return self._projects.trust.remedy(folder, what)

    def python(self, path: str) -> Interpreter | None:
        """Return the interpreter that traces a file's functions, and why it was chosen, if any."""
        return self._projects.of(path).interpreter

    def _look_for_decisions(self) -> None:
        """Take up decisions that the user made elsewhere, with `jaxsight trust`."""
        if self._projects.trust.changed():
            self._projects.decided()
            self._begin_again()

    def _begin_again(self) -> None:
        """Drop all answers: settings, interpreters or decisions changed."""
        self._answering.clear()
        if self._compiling is not None:
            self._compiling.forget()
        self._refresh_all()

    def open(self, path: str, text: str) -> None:
        """Open a document; its functions are traced in the background from now on."""
        self._documents[path] = Document(path, "")
        self._put(path, text)

    def change(self, path: str, text: str) -> None:
        """Replace the document's whole text."""
        self._unsaved.add(path)
        self._fixing.stop(path)
        self._put(path, text)

    def _put(self, path: str, text: str) -> None:
        document = self._documents[path]
        if _loop_runs():
            document.put(text, self._projects.of(path).outside, self._readers, self._turns)
        else:
            document.change(text)
        self._schedule(path)

    def saved(self, path: str) -> None:
        """Mark the document as saved: changes are shown relative to its programs as of now."""
        self._unsaved.discard(path)
        for key, (_, result) in self._compiled.items():
            if key[0] == path and isinstance(result.outcome, Compiled):
                self._saved[key] = result.outcome
        if path in self._documents:
            self.events.put_nowait(Refresh(path))

    def close(self, path: str) -> None:
        if (document := self._documents.pop(path, None)) is not None:
            document.close()
        if (task := self._background.pop(path, None)) is not None:
            task.cancel()
        self._answering.forget(path)
        self._fixing.stop(path)
        self._stop_measuring(path)
        for unit in [unit for unit in self._made if unit[0] == path]:
            del self._made[unit]
        for key in [key for key in self._compiled if key[0] == path]:
            del self._compiled[key]
            self._saved.pop(key, None)
        self._unsaved.discard(path)
        self._projects.closed(path)

    def files_changed(self, paths: Sequence[str]) -> None:
        """Check all open documents again after settings or imported modules changed on disk."""
        if self._projects.files_changed(paths):
            self._answering.clear()
        self._refresh_all()

    async def hover(self, path: str, position: Position) -> Hover | None:
        """Return the hover of the function with example inputs, or expression, at a position."""
        opened = self._documents.get(path)
        text = opened.text if opened is not None else ""
        document = await self._read(path)
        if document is None or document.text != text:
            return None  # the position is in an older text
        subjects = self._subjects(document)
        subject = subject_at(subjects, position)
        if subject is not None and position in subject.name_range:
            if subject.function.refused == "nested":
                seen = await self._helper_hover(document, subject.chunk, subject.function)
                if seen is not None:
                    return seen
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
        module = document.module
        stale: Hover | None = None
        for candidate in _by_closeness(subjects, subject):
            if document.module is not module:
                break  # The position is in an older text.
            if not await self._may_reach(document, candidate, chunk):
                continue
            for view in await self._views_on_hover(document, candidate):
                hover = self._seen_at(view, places or view.around(position))
                if hover is not None and not hover.stale:
                    return hover
                stale = stale or hover
        return stale

    async def _views_on_hover(self, document: Document, subject: Subject) -> list[View]:
        """Return the views of a subject within a hover's patience.

        If the newest trace failed, the last successful one is among them.
        """
        view = await self._view(document, subject, HOVER_PATIENCE)
        if isinstance(view, Unasked):
            return []
        await self._placed(view)
        last = self._last_traced(view)
        return [view] if last is None else [view, last]

    def _seen_at(self, view: View, places: Sequence[Range]) -> Hover | None:
        """Return the hover of the first place at which a value was observed."""
        for place in places:
            observation = view.observed.get(place)
            if observation is not None and observation.values:
                source = view.module.slice_text(place)
                became = self._became(view, place)
                return expression_hover(source, place, observation, view, became)
        return None

    async def hints(
        self, path: str, range: Range | None = None, *, wait: bool = False
    ) -> list[Hint]:
        """Return the inlay hints in a range, by default in the whole file.

        Answers within `PATIENCE` with what is known, stale hints marked; a `Refresh` follows when
        there is more. With `wait`, answers when all hints are current.
        """
        document = await self._read(path)
        if document is None:
            return []
        wanted = self._projects.of(path).settings.inlay_hints
        if not (wanted.shapes or wanted.kernels or wanted.barriers):
            return []
        views = await self._views(document, None if wait else PATIENCE)
        if wait and (wanted.kernels or wanted.barriers):
            views = await self._compiled_views(document)
        # A half-typed name is an error: the code around it keeps its hints.
        views += [last for view in views if (last := self._last_traced(view)) is not None]
        shapes = self._shape_hints(document, views, range) if wanted.shapes else []
        kernels = [
            hint
            for hint in self._all_kernel_hints(views, wanted.kernels, wanted.barriers)
            if range is None or range.touches(hint.range)
        ]
        marks = self._caveat_hints(views, range) if wanted.shapes or wanted.kernels else []
        marks += self._waiting_hints(document, range, kernels=wanted.kernels)
        return sorted([*shapes, *kernels, *marks], key=lambda hint: (hint.range, hint.label))

    async def _compiled_views(self, document: Document) -> list[View]:
        """Return all views, after their programs were compiled.

        If a tracer ended meanwhile, its functions are traced again, a few times at most.
        """
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

    def _waiting_hints(
        self, document: Document, range: Range | None, *, kernels: bool
    ) -> list[Hint]:
        """Return a hint for each function that waits for the user's consent to run or compile."""
        project = self._projects.of(document.path)
        label, why = "not trusted", project.held_back
        if not why and kernels and (target := self._targets(document.path)[0]).host:
            label, why = (
                f"{shown_path(target.short)} waits for approval",
                project.not_sent(target.host),
            )
        if not why:
            return []
        heads = (
            kernel_words.head_of(document.module.text, subject.name_range, subject.range)
            for subject in self._subjects(document)
            if subject.examples.sets
        )
        return [Hint(at, label, why) for at in heads if range is None or range.touches(at)]

    def _caveat_hints(self, views: Sequence[View], range: Range | None) -> list[Hint]:
        """Return a hint for each function whose newest answer has caveats."""
        newest: dict[str, View] = {}
        for view in views:
            newest.setdefault(view.subject.name, view)
        hints = (caveats.hint(view, kernel_words.head(view)) for view in newest.values())
        return [
            hint
            for hint in hints
            if hint is not None and (range is None or range.touches(hint.range))
        ]

    def _all_kernel_hints(
        self, views: Sequence[View], totals: bool, barriers: bool
    ) -> Iterator[Hint]:
        """Yield the kernel hints of all views, without duplicates.

        On a line in a traced function, that function's hints are shown; on other lines those of the
        first function that reaches it.
        """
        told: set[Position] = set()
        for view in views:
            for hint in self._kernel_hints(view, totals, barriers):
                at = hint.range.start
                others = (other.subject_range for other in views if other is not view)
                if at in view.subject_range or not (at in told or any(at in one for one in others)):
                    told.add(at)
                    yield hint

    def _kernel_hints(self, view: View, totals: bool, barriers: bool) -> Iterator[Hint]:
        """Yield the hints about a function's kernels on the first target.

        Until the current text is compiled, they are those of its last program.
        """
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
        seen = self._seen(last[0], view.module, None, view.subject, view.failed, role="compiled")
        return Kernels.of(seen, last[1])

    def _became(self, view: View, place: Range) -> str:
        """Return how an expression was compiled for the first target; empty if unknown."""
        found = self._last_kernels(view)
        if found is None or found.view.stale != view.stale:
            return ""
        return kernel_words.expression_words(found, place)

    def _targets(self, path: str) -> tuple[Target, ...]:
        project = self._projects.of(path)
        settings = project.settings
        return chosen_targets(self._target or settings.target, settings.targets, project.jax)

    def _contracts(self, document: Document) -> list[asyncio.Task[list[Finding]]]:
        """Begin to check all contracts of a document concurrently, because one may take long."""
        tasks = [
            asyncio.ensure_future(self._contract_findings(document, subject, chosen, expect))
            for subject in self._subjects(document)
            for chosen in subject.examples.sets
            for expect in chosen.expects
        ]
        for task in tasks:
            self._kept.add(task)
            task.add_done_callback(self._kept.discard)
        return tasks

    async def _contract_findings(
        self, document: Document, subject: Subject, chosen: ExampleSet, expect: Expect
    ) -> list[Finding]:
        """Return the broken conditions of a contract with its example set."""
        module = document.module
        question = await self._question(document, subject, chosen)
        if isinstance(question, Unasked):
            return []
        try:
            answer = await self._ask(question, waiting=False)
        except Superseded:
            return []
        view = View(answer, module, question, subject)
        try:
            target = contracts.target_of(expect, self._targets(question.path)[0])
        except UnknownTarget as error:
            return [contracts.wrong_target(view, expect, error)]
        if not isinstance(answer.reply, Traced):
            # The active set's error is reported by itself; an external error may be temporary.
            external = isinstance(answer.reply, Died) and answer.reply.external
            silent = external or self._is_chosen(view)
            return [] if silent else [contracts.untraced(view, expect)]
        result = await self._held_result(view, target)
        return list(contracts.findings(view, expect, result)) if result is not None else []

    async def _held_result(self, view: View, target: Target) -> Result | None:
        """Return the result for a target that may be remote.

        An error, such as that of an unreachable host, is cached for a while.
        """
        key = (view.answer.question.key, target.name)
        held = self._held.get(key)
        now = asyncio.get_running_loop().time()
        if held is None or held.answer is not view.answer or held.ended + ERRORS_HOLD < now:
            held = _Held(view.answer, asyncio.ensure_future(self._result(view, target)))
            self._held.put(key, held)
        try:
            result = await asyncio.shield(held.task)
        except Exception:
            self._held.pop(key)
            raise
        lasting = result is not None and (
            isinstance(result.outcome, Compiled) or result.outcome.last
        )
        if not lasting and held.ended == math.inf:
            held.ended = asyncio.get_running_loop().time()
        return result

    async def _ready(
        self, tasks: Sequence[asyncio.Task[list[Finding]]], patience: float | None, path: str
    ) -> list[Finding]:
        """Return the findings of tasks done within `patience`; the others follow with a refresh."""
        if not tasks:
            return []
        done, pending = await asyncio.wait(tasks, timeout=patience)

        def ended(task: asyncio.Task[list[Finding]]) -> None:
            # Without findings there is nothing to refresh.
            if not task.cancelled() and task.exception() is None and task.result():
                self.events.put_nowait(Refresh(path))

        for task in pending:
            task.add_done_callback(ended)
        return [finding for task in tasks if task in done for finding in task.result()]

    async def _noticed(
        self,
        view: View,
        codes: Sequence[str],
        patience: float | None,
        far: float | None,
        *,
        compiled: bool,
    ) -> list[Finding]:
        """Return the findings in a traced program and in the first target's kernels.

        A refresh follows for those that take longer.

        Args:
            view: the answer.
            codes: the codes of the rules to run.
            patience: seconds to wait for each stage.
            far: the same for a target on another machine, which may be down.
            compiled: whether rules about kernels run.
        """
        if not isinstance(view.answer.reply, Traced):
            return []
        outlined = await self._within(self._outline(view), patience, view)
        if outlined is None:
            return []
        targets = self._targets(view.answer.question.path)
        platform = targets[0].platform if targets else ""
        found = await self._looked_at(
            view, lambda: list(noticing.of_program(view, outlined, codes, platform))
        )
        wrong = self._fixing.verifying.miscompiled(view.answer.question)
        if wrong is not None and miscompiled.RULE.code in codes:
            found += noticing.of_running(view, wrong, found)
        if not compiled or view.stale or not any(RULES[code].in_kernels for code in codes):
            return found
        if targets[0].host:
            result = await self._within(self._held_result(view, targets[0]), far, view)
        else:
            result = await self._within(self._result(view), patience, view)
        if result is not None:
            settings = self._projects.of(view.answer.question.path).settings
            here = settings.ignored_on(result.target)
            wanted_here = [code for code in codes if not ignored(code, here)]
            folding = None
            if noticing.FOLDING in wanted_here:
                folding = await self._within(self._folding(view, result), patience, view)
            if folding is not None and result.is_unfolded and not folding.is_ended:
                result = await self._within(self._result(view), patience, view) or result
            known = result
            found += await self._looked_at(
                view,
                lambda: list(noticing.of_kernels(view, outlined, known, wanted_here, folding)),
            )
        return found

    async def _folding(self, view: View, result: Result) -> Folding | None:
        """Return the compile times of a function with and without constant folding.

        Returns `None` if it is not worth measuring. A new program of the function cancels the
        measurement.
        """
        lowered, project = result.lowered, self._projects.of(view.answer.question.path)
        key = view.answer.question.path, view.subject.name
        running = self._measuring.get(key)
        if running is not None and running[0] is not view.answer:
            running[1].cancel()
            running = None
        is_compiled = lowered is not None and isinstance(result.outcome, Compiled)
        if lowered is None or not is_compiled or project.interpreter is None:
            return None
        if not folded_while_compiling.is_candidate(lowered.folds):
            return None
        if running is None:
            measure = self._compile().folding(
                view.answer,
                result.target,
                project.interpreter.path,
                functools.partial(tracing.lower, project),
            )
            running = self._measuring[key] = view.answer, asyncio.ensure_future(measure)
        task = running[1]
        await asyncio.wait([task])
        if self._measuring.get(key) is running:
            del self._measuring[key]
        ended = task.cancelled() or isinstance(task.exception(), Gone)
        return None if ended else task.result()

    def _stop_measuring(self, path: str | None = None) -> None:
        """Cancel the measurements of a file that was closed; all of them without a path."""
        for key, (_, task) in list(self._measuring.items()):
            if path in (None, key[0]):
                task.cancel()
                self._measuring.pop(key)

    def _refresh(self, path: str) -> None:
        self.events.put_nowait(Refresh(path))

    async def _looked_at(self, view: View, look: Callable[[], list[Finding]]) -> list[Finding]:
        """Return the findings of `look`, which runs in a thread for a large program."""
        return await self._aside.run(look) if view.is_large else look()

    async def _within(
        self, work: Coroutine[None, None, T | None], patience: float | None, view: View
    ) -> T | None:
        """Return the result of `work` if it ends within `patience`; otherwise a refresh follows."""
        task = asyncio.ensure_future(work)
        done, _ = await asyncio.wait([task], timeout=patience)
        if done:
            return task.result()
        self._keep(task, view.answer.question.path)
        return None

    async def _outline(self, view: View) -> Outlined | None:
        """Return the traced program as plain data.

        Returns `None` if it is gone, or if it is of an older text and not cached.
        """
        key = view.answer.question.key
        known = self._outlines.get(key)
        if known is not None and known[0] is view.answer:
            return known[1]
        if view.stale:
            return None
        project = self._projects.of(view.answer.question.path)
        outlined = await tracing.outline(project, view.answer)
        if outlined is None:
            # A tracer keeps few traces: trace again, and outline at once.
            self._answering.drop(view.answer.question)
            try:
                outlined = await tracing.outline(
                    project, await self._ask(view.answer.question, waiting=False)
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
                lambda path, host: self._projects.of(path).not_sent(host),
            )
        return self._compiling

    async def _result(self, view: View, target: Target | None = None) -> Result | None:
        """Return the result for a target, by default the first; `None` if it was not traced."""
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
                answer, target, project.interpreter.path, functools.partial(tracing.lower, project)
            )
        except Gone:
            # A tracer keeps few traces: trace again, and lower at once.
            self._answering.drop(question)
            try:
                answer = await self._ask(question, waiting=False)
                result = await self._compile().get(
                    answer,
                    target,
                    project.interpreter.path,
                    functools.partial(tracing.lower, project),
                )
            except (Gone, Superseded):
                return None
        if target in targets[:1]:
            key = question.path, view.subject.name
            self._refused.pop(key, None)
            if isinstance(result.outcome, Trouble):
                self._refused[key] = (answer, result)
        shown = target in targets[:1] and self._is_chosen(view)
        if shown and isinstance(result.outcome, Compiled):
            key = question.path, view.subject.name
            self._compiled[key] = (answer, result)
            if question.path not in self._unsaved or key not in self._saved:
                self._saved[key] = result.outcome
        return result

    @property
    def compiles(self) -> int:
        """The number of programs that were compiled, without those from a cache."""
        return self._compiling.compilers.compiled if self._compiling is not None else 0

    async def kernels(
        self, path: str, function: str, target: str | None = None, set_name: str | None = None
    ) -> tuple[View, Result]:
        """Return a function compiled for a target, for the terminal.

        Raises:
            LookupError: no such function or target, or it is not traced; the message says which.
        """
        for _ in range(2):  # a tracer may have ended meanwhile
            view = await self.view(path, function, set_name)
            if not isinstance(view.answer.reply, Traced):
                words = failures.summary(view.answer.reply, view)
                raise LookupError(f"{function} cannot be traced: {words}")  # noqa: TRY004
            chosen = self._picked(target) if target else None
            result = await self._result(view, chosen)
            if result is not None:
                return view, result
        raise LookupError(f"{function} cannot be lowered: the tracer ended twice")

    async def panel(self, path: str, where: Position | str) -> Panel | None:
        """Return the panel's data for the function at a position or with a name.

        Returns `None` if there is no function with example inputs.
        """
        document = await self._read(path)
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
            view.caveats,
        )

    async def findings(
        self,
        path: str,
        *,
        patience: float | None = None,
        kernels: bool | None = None,
        fixes: bool = False,
    ) -> list[Finding]:
        """Return all findings of a file: in example inputs, traces and kernels, or settings.

        Args:
            patience: seconds to wait for new traces; without it, wait for all of them.
            kernels: whether functions are compiled for rules about kernels. By default as for hints
                and as an editor asks: contracts whose compiles take longer than `CONTRACT_PATIENCE`
                follow with a `Refresh`.
            fixes: whether to begin to verify fixes, as always for an editor's findings.
        """
        if (settings := self._projects.settings_findings(path)) is not None:
            return settings
        await self._turns.breathe()
        document = await self._read(path)
        if document is None:
            return []
        subjects = self._subjects(document)
        checking = self._contracts(document)
        views = await self._views(document, patience)
        project = self._projects.of(path)
        codes = wanted(project.settings, _below(project.root, path))
        seen = [(view, f) for view in views for f in failures.reported(view)]
        found: list[Finding] = []
        for chunk in document.module.chunks:
            await self._turns.breathe()
            found += noticing.of_text(chunk)
        module = document.module
        found += await self._aside.judge(module, lambda: list(noticing.of_module(module)))
        found += noticing.of_size(module)
        hints = project.settings.inlay_hints
        compiled = hints.kernels or hints.barriers if kernels is None else kernels
        limit = CONTRACT_PATIENCE if patience is None and kernels is None else patience
        for view in views:
            await self._turns.breathe()
            noticed = await self._noticed(view, codes, patience, limit, compiled=compiled)
            seen += [(view, finding) for finding in noticed]
        owners = {finding: view for view, finding in one_a_line(seen)}
        found = [*owners, *found]
        found += nested.findings(subjects, views)
        found += await self._ready(checking, limit, path)
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

    async def completeness(self, path: str) -> list[Completeness]:
        """Return the caveats of the answer about each traced function of a file."""
        document = await self._read(path)
        views = await self._views(document, None) if document is not None else []
        return [Completeness(view.subject.name, view.subject_range, view.caveats) for view in views]

    async def uncompiled(self, path: str) -> list[Uncompiled]:
        """Return the functions of a file that were not compiled for the first target, and why.

        They are those of the last call of `findings`.
        """
        document = await self._read(path)
        targets = self._targets(path)
        if document is None or not targets:
            return []
        found = []
        for view in await self._views(document, None):
            known = self._refused.get((path, view.subject.name))
            result = known[1] if known is not None and known[0] is view.answer else None
            if (one := Uncompiled.of(view, result, targets[0].short)) is not None:
                found.append(one)
        return found

    async def verify(self, path: str, deadline: float | None = None) -> Verified:
        """Compare the programs of a file's functions with those of the imported module.

        This is for the terminal.
        Args:
            deadline: time limit of each import in seconds; by default that of the setting
                `timeouts.execute`.
        """
        document = await self._read(path)
        if document is None or document.module.syntax_problem is not None:
            return Verified()
        project = self._projects.of(path)
        functions = [
            each
            for subject in self._subjects(document)
            if (each := await self._sliced(document, subject)) is not None
        ]
        if not functions:
            return Verified()
        seconds = project.settings.timeouts.execute if deadline is None else deadline
        work = Verification(document.module, functions, project.import_whole, seconds)
        verified = await work.verified()
        file = _below(project.root, path)
        kept = report(document.module, (), verified.findings, project.settings, file)
        return replace(verified, findings=tuple(kept))

    async def _sliced(self, document: Document, subject: Subject) -> Sliced | None:
        """Return a function with its program; `None` if it is not traced or its tracer died."""
        project = self._projects.of(document.path)
        for _ in range(_TRACED_AGAIN):
            view = await self._view(document, subject, None)
            question = await self._question(document, subject)
            if not isinstance(view, View) or isinstance(question, Unasked):
                return None
            if view.stale or isinstance(view.answer.reply, Died):
                return None
            if isinstance(view.answer.reply, Failed):
                return Sliced(view, question, None)
            shown = await tracing.show(project, view.answer, PROGRAM)
            if isinstance(shown, replies.Shown):
                return Sliced(view, question, shown.text)
            self._answering.drop(question)
        return None

    async def fixes(self, path: str) -> list[Fix]:
        """Return the verified fixes of a file's findings, also about kernels; for the terminal."""
        await self.findings(path, kernels=True, fixes=True)
        document = await self._read(path)
        if document is None:
            return []
        return await self._fixing.fixes(path, document.module, None, None)

    def _module(self, path: str) -> Module | None:
        document = self._documents.get(path)
        return document.module if document is not None else None

    async def lenses(self, path: str) -> list[Lens]:
        """Return the lenses above each function with example inputs."""
        document = await self._read(path)
        if document is None or not self._projects.of(path).settings.code_lens:
            return []
        return [
            lens
            for subject in self._subjects(document)
            for lens in lenses(path, subject, self._chosen_set(document, subject))
        ]

    async def actions(self, path: str, range: Range) -> list[Action]:
        """Return the code actions for a range, with the fixes that are verified within a moment."""
        document = await self._read(path)
        if document is None:
            return []
        module = document.module
        fixes = await self._fixing.fixes(path, module, range, FIX_PATIENCE)
        actions = list(quick_fixes(fixes)) if document.module is module else []
        subjects = self._subjects(document)
        actions += add_examples(document.module, subjects, range)
        actions += run_marks(document.module, await self._known_caveats(document), range)
        subject = subject_at(subjects, range.start)
        if subject is not None and self._chosen_set(document, subject) is not None:
            question = await self._question(document, subject)
            known = self._answering.known(question) if isinstance(question, Question) else None
            reply = known.reply if known is not None else None
            actions += sourcerize(path, document.module, subject, range, reply)
            actions += views(path, subject, reply)
        return actions

    async def _known_caveats(self, document: Document) -> list[Caveat]:
        """Return the caveats of all cached answers about a document."""
        found: list[Caveat] = []
        for subject in self._subjects(document):
            await self._turns.breathe()
            question = await self._question(document, subject)
            if isinstance(question, Question) and (known := self._answering.known(question)):
                found += self._seen(known, document.module, question, subject).caveats
        return found

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        """Return the edits of a pending action: they insert the source of a function below it.

        Raises:
            LookupError: no such function, or no source that could be verified; the message says
                why.
        """
        await self._read(path)
        document, subject = self._find(path, pending)
        name = inserted_name(document.module, pending)
        shown = await self._show(path, pending, SourceOptions(INSERTED_STYLE, name=name))
        document, subject = self._find(path, pending)
        return insertion(document.module, subject, shown.text, module_name(document.path))

    async def completions(self, path: str, position: Position) -> list[Completion]:
        """Return completions inside a section of example inputs; none elsewhere."""
        document = await self._read(path)
        if document is None:
            return []
        found = document.module.function_at(position)
        if found is None:
            return []
        chunk, function = found
        proposals = complete(
            function, position.up(chunk.first_line), self._projects.of(path).outside.sizes
        )
        return [proposal.shifted(chunk.first_line) for proposal in proposals]

    async def show(self, path: str, function: str, what: str | SourceOptions = "jaxpr") -> Shown:
        """Return a virtual document: a function's program, source, or view by an interpreter.

        Args:
            what: `jaxpr`, `stablehlo`, `hlo` or `kernels`, options for its source, or the name of a
                jaxpr interpreter in the user's environment.

        Raises:
            LookupError: there is no such function with example inputs, it cannot be traced, the
                interpreter fails, or no source could be verified (`NotSourcerized`); the message
                says which.
        """
        shown = await self._show(path, function, what)
        return marked(shown, "//" if what in (STABLEHLO, "hlo") else "#")

    def sourcerize_options(self, path: str, wanted: SourceOptions) -> SourceOptions:
        """Return options for source, completed from the settings of a file's project."""
        derivatives = wanted.derivatives or self._projects.of(path).settings.sourcerize.derivatives
        return replace(wanted, derivatives=derivatives)

    async def _show(self, path: str, function: str, what: str | SourceOptions) -> Shown:
        """Return the document itself, without the line that marks it as stale."""
        if what in kernel_words.DOCUMENTS:
            view, result = await self.kernels(path, function)
            return kernel_words.document(view, result, str(what))
        view = await self.view(path, function)
        reply = view.answer.reply
        if not isinstance(reply, Traced):
            words = failures.summary(reply, view)
            raise LookupError(f"{function} cannot be traced: {words}")  # noqa: TRY004
        project = self._projects.of(path)
        if isinstance(what, SourceOptions):
            wanted = self.sourcerize_options(path, what)
            return await self._sources.get(
                view, wanted, functools.partial(tracing.sourcerize, project)
            )
        target = self._targets(path)[0]
        platform = target.platform if what == STABLEHLO else ""
        shown = await tracing.show(project, view.answer, what, platform)
        if shown is None:
            self._answering.drop(view.answer.question)
            return await self._show(path, function, what)
        if not isinstance(shown, replies.Shown):
            if platform and isinstance(shown, Failed):
                words = f"lowered for {target.short}: {shown.failure.message}"
            else:
                words = f"shown with interpreter {what}: {failures.of_interpreter(shown)}"
            raise LookupError(f"{function} cannot be {words}")  # noqa: TRY004
        return virtual_documents.document(view, f"{function}.{what}", shown)

    async def view(self, path: str, function: str, set_name: str | None = None) -> View:
        """Return the answer about one function, for the terminal.

        Raises:
            LookupError: no such function, no example inputs, no such set, or not traceable; the
                message says which.
        """
        await self._read(path)
        document, subject = self._find(path, function)
        if set_name is not None:
            self.choose_set(path, function, set_name)
        view = await self._view(document, subject, None)
        if isinstance(view, Unasked):
            raise LookupError(f"{function} is not traced: {view.reason}")  # noqa: TRY004
        return view

    async def interpreter(self, path: str) -> str:
        """Return the Python interpreter of the project that contains a path.

        Raises:
            LookupError: there is none; the message says why.
        """
        project = self._projects.of(path)
        if project.interpreter is None:
            raise LookupError(project.problem or "no Python interpreter with JAX found")
        return project.interpreter.path

    def functions(self, path: str) -> list[str]:
        """Return the qualified names of the functions that have example inputs."""
        document = self._now(path)
        return [] if document is None else [s.name for s in self._subjects(document)]

    def sets(self, path: str, function: str) -> list[str]:
        """Return the names of a function's example sets; that of an unnamed first one is empty."""
        _, subject = self._find(path, function)
        return [s.name for s in subject.examples.sets]

    def choose_set(self, path: str, function: str, name: str) -> None:
        """Make another example set of a function the active one.

        Raises:
            LookupError: no such function or set.
        """
        names = self.sets(path, function)
        if name not in names:
            raise LookupError(
                f"{function} has no example inputs named {name!r}; it has "
                f"{', '.join(map(repr, names))}"
            )
        self._chosen[path, function] = name
        self._schedule(path)

    def choose_target(self, name: str) -> None:
        """Show kernels for another target from now on; an empty name selects that of the settings.

        Raises:
            LookupError: no such target; the message has the nearest names.
        """
        self._target = self._picked(name).name if name else ""
        self._refresh_all()

    def _picked(self, name: str) -> Target:
        """Return the target that the user named, who thereby allows its host.

        Raises:
            LookupError: no such target; the message has the nearest names.
        """
        try:
            target = parse(name)
        except UnknownTarget as error:
            raise LookupError(str(error)) from error
        if target.host:
            self._projects.trust.allow(f"{SSH}{target.host}")
        return target

    async def restart(self, root: str | None = None) -> None:
        """Restart the tracers and drop all answers."""
        self._answering.clear()
        await self._projects.restart(root)
        self._refresh_all()

    async def aclose(self) -> None:
        """Cancel all background work and end every process."""
        for task in self._background.values():
            task.cancel()
        for kept in self._kept:
            kept.cancel()
        self._stop_measuring()
        for path in list(self._documents):
            self._answering.cancel(path)
        await self._fixing.aclose()
        if self._compiling is not None:
            await self._compiling.aclose()
        await self._projects.aclose()
        self._aside.close()
        self._readers.close()

    def _find(self, path: str, function: str) -> tuple[Document, Subject]:
        document = self._now(path)
        if document is None:
            raise LookupError(f"{path} is not open")
        for subject in self._subjects(document):
            if subject.name == function:
                if subject.examples.sets:
                    return document, subject
                raise LookupError(f"the example inputs of {function} have errors")
        known = {f.qualname for _, f in document.module.functions}
        if function in known:
            raise LookupError(
                f"{function} has no example inputs: add a section `Example inputs:` to its "
                "docstring"
            )
        raise LookupError(f"there is no function {function} in {path}")

    async def _read(self, path: str) -> Document | None:
        """Return an open document after its text was parsed."""
        document = self._documents.get(path)
        if document is not None and not document.is_read:
            await document.read()
        return self._documents.get(path)

    def _now(self, path: str) -> Document | None:
        """Return an open document; its text is parsed at once."""
        document = self._documents.get(path)
        if document is not None:
            document.read_now()
        return document

    def _subjects(self, document: Document) -> tuple[Subject, ...]:
        return document.subjects(self._projects.of(document.path).outside)

    async def _may_reach(self, document: Document, subject: Subject, chunk: ModuleChunk) -> bool:
        """Return whether the subject's trace may have reached a chunk, without tracing it."""
        question = await self._question(document, subject)
        return isinstance(question, Unasked) or any(
            member.first_line == chunk.first_line for member in question.slice.members
        )

    def _is_chosen(self, view: View) -> bool:
        """Return whether a view is of the active example set."""
        document = self._documents.get(view.answer.question.path)
        chosen = self._chosen_set(document, view.subject) if document is not None else None
        return chosen is None or chosen.name == view.answer.question.set.name

    def _chosen_set(self, document: Document, subject: Subject) -> ExampleSet | None:
        sets = subject.examples.sets
        name = self._chosen.get((document.path, subject.name))
        return next((s for s in sets if s.name == name), sets[0] if sets else None)

    async def _question(
        self, document: Document, subject: Subject, chosen: ExampleSet | None = None
    ) -> Question | Unasked:
        """Return the question about a function with an example set, by default the active one."""
        if chosen is None:
            chosen = self._chosen_set(document, subject)
        if chosen is None:
            return Unasked("the example inputs have errors")
        project = self._projects.of(document.path)
        if project.held_back:
            project.ask_consent()
            return Unasked(project.held_back)
        module = document.module
        asked = functools.partial(
            ask,
            document,
            subject,
            chosen,
            module=module,
            root=project.root,
            environment=project.environment,
            patience=project.settings.timeouts.statement,
        )
        question = await self._aside.judge(module, asked)
        if document.module is not module:
            return Unasked("the text is being edited")
        return question

    async def _helper_hover(
        self, document: Document, chunk: ModuleChunk, function: Function
    ) -> Hover | None:
        range = function.name_range.shifted(chunk.first_line)
        module = document.module
        subjects = self._subjects(document)
        stale: Hover | None = None
        for subject in _by_closeness(subjects, subject_at(subjects, range.start)):
            if document.module is not module:
                break
            if not await self._may_reach(document, subject, chunk):
                continue
            for view in await self._views_on_hover(document, subject):
                hover = helper_hover(function, range, view, chunk.first_line)
                if hover is not None and not hover.stale:
                    return hover
                stale = stale or hover
        return stale

    async def _function_hover(self, document: Document, subject: Subject) -> Hover:
        view = await self._view(document, subject, HOVER_PATIENCE)
        if isinstance(view, Unasked):
            return unasked_hover(subject, view.reason)
        words = await self._target_words(view)
        return function_hover(subject, view, words, caveats.markdown(view.caveats))

    async def _target_words(self, view: View) -> str:
        """Return Markdown about the function on each target, as far as known after a moment."""
        if not isinstance(view.answer.reply, Traced) or view.stale:
            return ""
        targets = self._targets(view.answer.question.path)
        asked = [asyncio.ensure_future(self._result(view, each)) for each in targets]
        if not asked:
            return ""
        # After an edit only the jaxpr is awaited: kernels follow in the hints.
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
        """Let a compile continue, and send a refresh when it is done."""
        self._kept.add(task)

        def ended(done: asyncio.Future[T]) -> None:
            self._kept.discard(done)
            if not done.cancelled() and done.exception() is None:
                self.events.put_nowait(Refresh(path))

        task.add_done_callback(ended)

    async def _view(
        self, document: Document, subject: Subject, patience: float | None
    ) -> View | Unasked:
        """Return the view of a subject in the current text.

        It is stale if `patience` runs out and there is an older answer.
        """
        module = document.module
        question = await self._question(document, subject)
        chosen = self._chosen_set(document, subject)
        latest = self._answering.latest(document.path, subject.name, chosen.name if chosen else "")
        if isinstance(question, Unasked):
            if latest is None or self._projects.of(document.path).held_back:
                return question
            return self._seen(latest, module, None, subject)
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
                # The settings changed, not the text, so the question has another key now.
                return await self._view(document, standing, patience)
        if answer is None:
            return Unasked("the text is being edited")
        if answer.question.trace.whole != question.trace.whole:
            return self._seen(answer, module, answer.question, subject)
        return self._seen(answer, module, question, subject)

    async def _views(self, document: Document, patience: float | None) -> list[View]:
        """Return the views of all subjects of a document.

        Waits at most `patience` seconds for new answers.
        """
        module = document.module
        subjects = self._subjects(document)
        questions: list[tuple[Subject, Question | Unasked]] = []
        for subject in subjects:
            await self._turns.breathe()
            questions.append((subject, await self._question(document, subject)))
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
            if any(q.trace.whole != document.looked_into for q in unknown):
                return await self._views(document, patience)
        views: list[View] = []
        for subject, question in questions:
            await self._turns.breathe()
            answer = self._answering.known(question) if isinstance(question, Question) else None
            now = question if isinstance(question, Question) else None
            if answer is None:
                chosen = self._chosen_set(document, subject)
                answer = self._answering.latest(
                    document.path, subject.name, chosen.name if chosen else ""
                )
            if answer is not None:
                views.append(await self._placed(self._seen(answer, module, now, subject)))
        return views

    async def _placed(self, view: View) -> View:
        """Return the view after finding the places of its observations, in a thread if large."""
        if view.is_large:
            await self._aside.run(lambda: view.observed, waiting=True)
        return view

    def _last_traced(self, view: View) -> View | None:
        """Return the last trace of a function whose newest trace failed, in the current text."""
        if isinstance(view.answer.reply, Traced):
            return None
        question = view.answer.question
        last = self._answering.traced(question.path, view.subject.name, question.set.name)
        if last is None:
            return None
        return self._seen(last, view.module, None, view.subject, view, role="traced")

    def _seen(
        self,
        answer: Answer,
        module: Module,
        now: Question | None,
        subject: Subject,
        failed: View | None = None,
        *,
        role: str = "latest",
    ) -> View:
        """Return the view of an answer in the module, cached because moving spans takes time.

        Args:
            failed: the newest answer, if it is an error and `answer` is an earlier one.
            role: which of a function's answers this is; each has its own cached view.
        """
        unit = answer.question.path, subject.name, role
        made = self._made.get(unit)
        if made is None or not made.still(answer, module, now, failed):
            made = View(answer, module, now, subject, failed)
            self._made[unit] = made
        return made

    async def _ask(self, question: Question, *, waiting: bool) -> Answer:
        if not waiting:
            await self._turns.breathe()
        answer = await self._answering.get(
            question,
            functools.partial(tracing.trace, self._projects.of(question.path)),
            waiting=waiting,
        )
        document = self._documents.get(question.path)
        if not answer.wants_whole or question.trace.whole or document is None:
            return answer
        document.looked_into = True
        again = await self._question(document, question.subject)
        return answer if isinstance(again, Unasked) else await self._ask(again, waiting=waiting)

    def _refresh_all(self) -> None:
        self._held.clear()
        for path in self._documents:
            self._schedule(path)

    def _schedule(self, path: str) -> None:
        if (task := self._background.get(path)) is not None:
            task.cancel()
        if _loop_runs():
            self._background[path] = asyncio.create_task(
                self._trace_all(path), name=f"trace {path}"
            )

    async def _trace_all(self, path: str) -> None:
        """Trace the functions without an answer after a pause in typing, and send refreshes."""
        await asyncio.sleep(debounce(self._answering.seconds(path)))
        document = await self._read(path)
        if document is None:
            return
        self._look_for_decisions()
        await self._turns.breathe()
        for subject in self._subjects(document):
            await self._turns.breathe()
            question = await self._question(document, subject)
            if isinstance(question, Unasked) or self._answering.known(question) is not None:
                continue
            try:
                await self._ask(question, waiting=False)
            except Superseded:
                # Another question about the function replaced this one, such as one about an older
                # text whose trace was gone. Start over, or no refresh would follow.
                if self._background.get(path) is asyncio.current_task():
                    self._schedule(path)
                return
            except Exception:
                log.exception("tracing %s of %s in the background", subject.name, path)
                return
            self.events.put_nowait(Refresh(path))
        self.events.put_nowait(Refresh(path))
        await self._compile_all(path)

    async def _compile_all(self, path: str) -> None:
        """Compile traced functions for the first target, one by one, if hints show kernels."""
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


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _named(subjects: Sequence[Subject], name: str) -> Subject | None:
    return next((subject for subject in subjects if subject.name == name), None)


async def _given_up(tasks: Sequence[asyncio.Task[Answer]]) -> None:
    """Cancel tasks whose answers are not needed any more, and discard their errors."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _below(root: str, path: str) -> PurePosixPath:
    """Return the path that patterns of settings match: from the root, with `/` on every system."""
    return PurePosixPath(os.path.relpath(path, root).replace(os.sep, "/"))


def _by_closeness(subjects: Sequence[Subject], own: Subject | None) -> list[Subject]:
    """Return the subject that contains the cursor first, then the others.

    The traces of other subjects may have observed a helper's expressions.
    """
    return [*([own] if own is not None else []), *(s for s in subjects if s is not own)]
