"""The engine as its owners see it: documents go in, answers in editor terms come out.

One `Session` lives in a server process (and in each run of the terminal's commands). It knows no
LSP and imports no JAX. All its state is here: the open documents, the projects, the chosen example
sets. Nothing in it blocks: what takes time is awaited, what an edit makes stale is cancelled, and
what was known before is shown, marked stale, meanwhile.
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

from jaxsight.compiler.cache import Cache
from jaxsight.compiler.protocol import Compiled, Folding
from jaxsight.compiler.targets import Target, UnknownTarget, parse
from jaxsight.engine import caveats, contracts, examples, failures, nested, noticing
from jaxsight.engine import kernels as kernel_words
from jaxsight.engine.actions import add_examples, quick_fixes, run_marks, sourcerize, views
from jaxsight.engine.answering import Answering, Superseded
from jaxsight.engine.answers import (
    Action,
    Caveat,
    Completion,
    Finding,
    Hint,
    Hover,
    Lens,
    Shown,
)
from jaxsight.engine.aside import Aside, Turns
from jaxsight.engine.cache import Recent
from jaxsight.engine.caveats import Completeness
from jaxsight.engine.compiling import Compiling, Gone, Result, chosen_targets
from jaxsight.engine.diagnostics import one_a_line, report, wanted
from jaxsight.engine.documents import Document, Subject, module_name, subject_at
from jaxsight.engine.events import Consent, Event, Refresh
from jaxsight.engine.examples import ExampleSet
from jaxsight.engine.examples.expect import Expect
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
from jaxsight.engine.interpreters import Interpreter
from jaxsight.engine.kernels import Kernels
from jaxsight.engine.lenses import lenses
from jaxsight.engine.module import Module, ModuleChunk
from jaxsight.engine.panel import Panel, drawn
from jaxsight.engine.projects import Projects
from jaxsight.engine.questions import Question, Unasked, ask
from jaxsight.engine.relocate import expressions_at
from jaxsight.engine.schedule import debounce
from jaxsight.engine.sourcerized import INSERTED_STYLE, Sources, inserted_name, insertion
from jaxsight.engine.stale import marked
from jaxsight.engine.text import Edit, Position, Range
from jaxsight.engine.trust.decisions import SSH
from jaxsight.engine.trust.words import shown_path
from jaxsight.engine.uncompiled import Uncompiled
from jaxsight.engine.verification import Sliced, Verification, Verified
from jaxsight.engine.views import Answer, View
from jaxsight.rules import RULES
from jaxsight.rules.jx102_folded_while_compiling import rule as folded_while_compiling
from jaxsight.rules.jx413_miscompiled import rule as miscompiled
from jaxsight.rules.selection import ignored
from jaxsight.tracer import protocol
from jaxsight.tracer.protocol import Observation, Outlined, Sourcerize, Traced
from jaxsight.workers.compilers import Compilers, Trouble
from jaxsight.workers.outcomes import Died

log = logging.getLogger(__name__)

PATIENCE = 0.15
"""Seconds that hints wait for a fresh trace before they show the stale one: an ordinary trace fits,
so nothing flickers.
"""
COMPILE_PATIENCE = 0.3
"""Seconds that a hover waits for a function's first compile: most small ones take no longer; the
others are told of when they are ready.
"""
HOVER_PATIENCE = 1.5
"""Seconds that a hover waits for a fresh trace when a stale answer is at hand."""

CONTRACT_PATIENCE = 0.3
"""Seconds that an editor's findings wait for contracts once all else is there, and for targets on
other machines: a host may be down.
"""
ERRORS_HOLD = 60.0
"""Seconds after which a contract that could not be checked is tried again when it is asked for."""
FIX_PATIENCE = 1.0
"""Seconds that code actions wait for fixes that are being tried."""
_TRACED_AGAIN = 3
"""Times that hints wait for what was traced again while it was compiled."""
_READERS = 3
"""Large texts that are read at the same time."""
_OUTLINES = 64
"""Programs that are kept as plain data."""

T = TypeVar("T")


@dataclass(slots=True)
class _Held:
    """A compile for a contract, or for another machine; `ended` is when it failed with what may
    pass, else never.
    """

    answer: Answer
    task: asyncio.Task[Result | None]
    ended: float = math.inf


class Session:
    """See the module's docstring. All methods are to be called from one event loop."""

    def __init__(self, projects: Projects | None = None) -> None:
        """`projects` are given by an owner that has them start their tracers before it has the
        session.
        """
        self._projects = projects if projects is not None else Projects()
        self.events: asyncio.Queue[Event] = self._projects.events
        self._documents = self._projects.documents
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
        """The target that a person chose; the settings' while it is empty."""
        self._saved: dict[tuple[str, str], Compiled] = {}
        """What each function was when its file was last saved, by file and name."""
        self._unsaved: set[str] = set()
        self._measuring: dict[tuple[str, str], tuple[Answer, asyncio.Future[Folding | None]]] = {}
        """By file and function: the answer whose constant folding is being measured."""
        self._kept: set[asyncio.Future[Any]] = set()
        self._held: Recent[tuple[str, str], _Held] = Recent(_OUTLINES)
        """Compiles for contracts and other machines, running or done, by question and target."""
        self._outlines: Recent[str, tuple[Answer, Outlined]] = Recent(_OUTLINES)
        self._compiled: dict[tuple[str, str], tuple[Answer, Result]] = {}
        self._refused: dict[tuple[str, str], tuple[Answer, Result]] = {}
        """What came of the functions that could not be compiled for the first target when they were
        last asked about.
        """
        """The last result of each function, by file and name, to be shown while the next one is
        made.
        """

    def configure(
        self,
        roots: Sequence[str],
        editor: Mapping[str, object],
        *,
        trusted: bool | None = None,
        editor_python: Mapping[str, str] | None = None,
        editor_by_root: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """Take the editor's folders and settings; what changed takes effect at once.

        Args:
            roots: the workspace's folders.
            editor: the editor's settings as they came, unchecked.
            trusted: what the editor says of whether user code may run, if anything; `False` always
                holds.
            editor_python: the interpreter that the editor chose, by folder.
            editor_by_root: whole settings of folders that have some of their own, by folder; they
                stand in place of `editor`.
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
        """The user's answer to a question of `events`: it takes effect at once.

        `None`: there is none.
        """
        trust = self._projects.trust
        if trust.decide(consent, answer):
            self._projects.decided()
            self._begin_again()
            await asyncio.to_thread(trust.keep, consent, answer)
            if trust.changed() and self._projects.decided():
                self._begin_again()

    def ask_again(self, folder: str | None = None) -> bool:
        """Have the user asked for all that waits for a decision, or for what waits of one folder;
        whether anything does.
        """
        self._look_for_decisions()
        return self._projects.ask_again(folder)

    def remedy(self, folder: str, what: str) -> str:
        """What lets a folder reach something, as an imperative clause."""
        return self._projects.trust.remedy(folder, what)

    def python(self, path: str) -> Interpreter | None:
        """The interpreter that traces a file's functions, and why it is that one; nothing where
        there is none.
        """
        return self._projects.of(path).interpreter

    def _look_for_decisions(self) -> None:
        """Take up what the user decided elsewhere, by `jaxsight trust`."""
        if self._projects.trust.changed():
            self._projects.decided()
            self._begin_again()

    def _begin_again(self) -> None:
        """Settings, interpreters or decisions are others now: nothing that was answered holds."""
        self._answering.clear()
        if self._compiling is not None:
            self._compiling.forget()
        self._refresh_all()

    def open(self, path: str, text: str) -> None:
        """A document is open; its functions are traced in the background from now on."""
        self._documents[path] = Document(path, "")
        self._put(path, text)

    def change(self, path: str, text: str) -> None:
        """The document's whole text is now `text`."""
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
        """The document is on disk as it is: changes are told against what its functions are now."""
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
        """Files changed on disk (settings, imported modules): look again at everything that is
        open.
        """
        if self._projects.files_changed(paths):
            self._answering.clear()
        self._refresh_all()

    async def hover(self, path: str, position: Position) -> Hover | None:
        """What stands at the position: a function with example inputs, or an expression that was
        seen in a trace.
        """
        opened = self._documents.get(path)
        text = opened.text if opened is not None else ""
        document = await self._read(path)
        if document is None or document.text != text:
            return None  # the position was one of an older text
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
                break  # The position was one of an older text.
            if not await self._may_reach(document, candidate, chunk):
                continue
            for view in await self._views_on_hover(document, candidate):
                hover = self._seen_at(view, places or view.around(position))
                if hover is not None and not hover.stale:
                    return hover
                stale = stale or hover
        return stale

    async def _views_on_hover(self, document: Document, subject: Subject) -> list[View]:
        """What is known of a subject within a hover's patience, and of its last trace where the
        newest one fails.
        """
        view = await self._view(document, subject, HOVER_PATIENCE)
        if isinstance(view, Unasked):
            return []
        await self._placed(view)
        last = self._last_traced(view)
        return [view] if last is None else [view, last]

    def _seen_at(self, view: View, places: Sequence[Range]) -> Hover | None:
        """What was seen at the first of some places where anything was."""
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
        """Shape hints in a range, the whole file by default.

        Answers within `PATIENCE` with what is known, stale parts marked; a `Refresh` follows when
        there is more. With `wait` it answers when all is fresh.
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
        # Half of a name that someone is typing is an error: what stands around it keeps its hints.
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
        """All views, once what they show is compiled.

        A tracer that ended meanwhile has its functions traced again, a few times at most.
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
        """A mark at the head of each function of which nothing runs, or is compiled, before the
        user agreed.
        """
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
        """A mark at the head of each function whose newest answer leaves something out."""
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
        """A line is told of by the function that it stands in, if that was traced, else by the
        first that reaches it.
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
        """What is known of a function's kernels on the first target; of its last text, while there
        is no more.
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
        """What became of an expression on the first target, as far as that is known."""
        found = self._last_kernels(view)
        if found is None or found.view.stale != view.stale:
            return ""
        return kernel_words.expression_words(found, place)

    def _targets(self, path: str) -> tuple[Target, ...]:
        project = self._projects.of(path)
        settings = project.settings
        return chosen_targets(self._target or settings.target, settings.targets, project.jax)

    def _contracts(self, document: Document) -> list[asyncio.Task[list[Finding]]]:
        """Begin to check what the docstrings of a document expect, all at once: one may take
        long.
        """
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
        """What of a contract does not hold with the example set that it belongs to."""
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
            # The error of the set in use is reported as it is; what the file has no part in may
            # pass.
            external = isinstance(answer.reply, Died) and answer.reply.external
            silent = external or self._is_chosen(view)
            return [] if silent else [contracts.untraced(view, expect)]
        result = await self._held_result(view, target)
        return list(contracts.findings(view, expect, result)) if result is not None else []

    async def _held_result(self, view: View, target: Target) -> Result | None:
        """What a function is on a target that may be far; of a host that cannot be reached the
        error, for a while.
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
        """The findings of the tasks that end within `patience`; those of the others follow with a
        refresh.
        """
        if not tasks:
            return []
        done, pending = await asyncio.wait(tasks, timeout=patience)

        def ended(task: asyncio.Task[list[Finding]]) -> None:
            # Nothing found is what was said already.
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
        """What the traced program and the first target's kernels show; what takes longer is told of
        when it is known.

        Args:
            view: the answer.
            codes: what to look for.
            patience: seconds to wait for each.
            far: the same for a target on another machine, which may be down.
            compiled: whether kernels are looked at.
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
        """How long a function compiles with constant folding and without; `None` where that is not
        worth measuring.

        The function's next program ends the measurement.
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
                view.answer, result.target, project.interpreter.path, project.lower
            )
            running = self._measuring[key] = view.answer, asyncio.ensure_future(measure)
        task = running[1]
        await asyncio.wait([task])
        if self._measuring.get(key) is running:
            del self._measuring[key]
        ended = task.cancelled() or isinstance(task.exception(), Gone)
        return None if ended else task.result()

    def _stop_measuring(self, path: str | None = None) -> None:
        """End the measurements of a file that nobody looks at any more; all of them without a
        path.
        """
        for key, (_, task) in list(self._measuring.items()):
            if path in (None, key[0]):
                task.cancel()
                self._measuring.pop(key)

    def _refresh(self, path: str) -> None:
        self.events.put_nowait(Refresh(path))

    async def _looked_at(self, view: View, look: Callable[[], list[Finding]]) -> list[Finding]:
        """What a look at a program finds; aside where it is that of a long function."""
        return await self._aside.run(look) if view.is_large else look()

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
        """The traced program as plain data; nothing when it is gone, or of an older text and not
        known.
        """
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
                lambda path, host: self._projects.of(path).not_sent(host),
            )
        return self._compiling

    async def _result(self, view: View, target: Target | None = None) -> Result | None:
        """What a function is on a target, the first one by default; nothing when it was not
        traced.
        """
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
            chosen = self._picked(target) if target else None
            result = await self._result(view, chosen)
            if result is not None:
                return view, result
        raise LookupError(f"{function} cannot be lowered: the tracer ended twice")

    async def panel(self, path: str, where: Position | str) -> Panel | None:
        """All that a panel shows of the function at a position or of a name; nothing where there is
        none with example inputs.
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
        """Everything to report about a file: its example inputs, the errors of its traces, or its
        settings.

        Args:
            patience: seconds to wait for fresh traces; all of them when not given.
            kernels: whether functions are compiled for what only their kernels tell; by default as
                for hints, and as an editor asks: contracts whose compiles take longer than
                `CONTRACT_PATIENCE` follow with a `Refresh`.
            fixes: whether to begin to try fixes for what is found, as an editor's findings always
                do.
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
        found += noticing.of_size(document.module)
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
        """What the answer about each function of a file leaves out; functions that are not asked
        about are not in it.
        """
        document = await self._read(path)
        views = await self._views(document, None) if document is not None else []
        return [Completeness(view.subject.name, view.subject_range, view.caveats) for view in views]

    async def uncompiled(self, path: str) -> list[Uncompiled]:
        """The functions of a file that were not compiled for the first target when its findings
        were asked for, with the reasons.
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
        """Whether the programs of a file's functions are those of the imported module; for the
        terminal.

        Args:
            deadline: seconds for each import; the settings' for running statements by default.
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
        """A function with its program; nothing where it is not asked about or its tracer died."""
        project = self._projects.of(document.path)
        for _ in range(_TRACED_AGAIN):
            view = await self._view(document, subject, None)
            question = await self._question(document, subject)
            if not isinstance(view, View) or isinstance(question, Unasked):
                return None
            if view.stale or isinstance(view.answer.reply, Died):
                return None
            if isinstance(view.answer.reply, protocol.Failed):
                return Sliced(view, question, None)
            shown = await project.show(view.answer, protocol.PROGRAM)
            if isinstance(shown, protocol.Shown):
                return Sliced(view, question, shown.text)
            self._answering.drop(question)
        return None

    async def fixes(self, path: str) -> list[Fix]:
        """What is proved to fix a file's findings, kernels' too; for the terminal."""
        await self.findings(path, kernels=True, fixes=True)
        document = await self._read(path)
        if document is None:
            return []
        return await self._fixing.fixes(path, document.module, None, None)

    def _module(self, path: str) -> Module | None:
        document = self._documents.get(path)
        return document.module if document is not None else None

    async def lenses(self, path: str) -> list[Lens]:
        """The example set in use above each function that has any."""
        document = await self._read(path)
        if document is None or not self._projects.of(path).settings.code_lens:
            return []
        return [
            lens
            for subject in self._subjects(document)
            for lens in lenses(path, subject, self._chosen_set(document, subject))
        ]

    async def actions(self, path: str, range: Range) -> list[Action]:
        """Code actions for a range: fixes as far as they are proved within a moment."""
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
        """The caveats of all answers about a document that are at hand."""
        found: list[Caveat] = []
        for subject in self._subjects(document):
            await self._turns.breathe()
            question = await self._question(document, subject)
            if isinstance(question, Question) and (known := self._answering.known(question)):
                found += self._seen(known, document.module, question, subject).caveats
        return found

    async def resolve(self, path: str, pending: str) -> tuple[Edit, ...]:
        """The edits of an action that has some `pending`: the source of a function, put below it.

        Raises:
            LookupError: there is no such function, or no source that could be verified; the message
                says why.
        """
        await self._read(path)
        document, subject = self._find(path, pending)
        name = inserted_name(document.module, pending)
        shown = await self._show(path, pending, Sourcerize(INSERTED_STYLE, name=name))
        document, subject = self._find(path, pending)
        return insertion(document.module, subject, shown.text, module_name(document.path))

    async def completions(self, path: str, position: Position) -> list[Completion]:
        """Proposals inside a section of example inputs; nothing elsewhere."""
        document = await self._read(path)
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
        """A virtual document about a function: its `jaxpr`, the function written as source, or what
        an interpreter makes of it.

        Args:
            what: `jaxpr`, `stablehlo`, `hlo` or `kernels`, a way to write source, or the name of an
                interpreter in the user's environment.

        Raises:
            LookupError: there is no such function with example inputs, it cannot be traced, the
                interpreter fails, or there is no source that could be verified (`NotSourcerized`);
                the message says which.
        """
        shown = await self._show(path, function, what)
        return marked(shown, "//" if what in (protocol.STABLEHLO, "hlo") else "#")

    def sourcerize_options(self, path: str, wanted: Sourcerize) -> Sourcerize:
        """A way to write source, completed from the settings of a file's project."""
        derivatives = wanted.derivatives or self._projects.of(path).settings.sourcerize.derivatives
        return replace(wanted, derivatives=derivatives)

    async def _show(self, path: str, function: str, what: str | Sourcerize) -> Shown:
        """The document itself, without a line that says that it is stale."""
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
            wanted = self.sourcerize_options(path, what)
            return await self._sources.get(view, wanted, project.sourcerize)
        target = self._targets(path)[0]
        platform = target.platform if what == protocol.STABLEHLO else ""
        shown = await project.show(view.answer, what, platform)
        if shown is None:
            self._answering.drop(view.answer.question)
            return await self._show(path, function, what)
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
        document = self._now(path)
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
                f"{function} has no example inputs named {name!r}; it has "
                f"{', '.join(map(repr, names))}"
            )
        self._chosen[path, function] = name
        self._schedule(path)

    def choose_target(self, name: str) -> None:
        """Show kernels for another target from now on; the settings' again when it is empty.

        Raises:
            LookupError: there is no such target; the message has the nearest names.
        """
        self._target = self._picked(name).name if name else ""
        self._refresh_all()

    def _picked(self, name: str) -> Target:
        """The target that a person named, who agrees to its host by that.

        Raises:
            LookupError: there is no such target; the message has the nearest names.
        """
        try:
            target = parse(name)
        except UnknownTarget as error:
            raise LookupError(str(error)) from error
        if target.host:
            self._projects.trust.allow(f"{SSH}{target.host}")
        return target

    async def restart(self, root: str | None = None) -> None:
        """Start the tracers anew, forgetting failures and answers."""
        self._answering.clear()
        await self._projects.restart(root)
        self._refresh_all()

    async def aclose(self) -> None:
        """End all background work and every process."""
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
                raise LookupError(f"the example inputs of {function} are not understood")
        known = {f.qualname for _, f in document.module.functions}
        if function in known:
            raise LookupError(
                f"{function} has no example inputs: add a section `Example inputs:` to its "
                "docstring"
            )
        raise LookupError(f"there is no function {function} in {path}")

    async def _read(self, path: str) -> Document | None:
        """An open document, once its text is read."""
        document = self._documents.get(path)
        if document is not None and not document.is_read:
            await document.read()
        return self._documents.get(path)

    def _now(self, path: str) -> Document | None:
        """An open document, its text read at once."""
        document = self._documents.get(path)
        if document is not None:
            document.read_now()
        return document

    def _subjects(self, document: Document) -> tuple[Subject, ...]:
        return document.subjects(self._projects.of(document.path).outside)

    async def _may_reach(self, document: Document, subject: Subject, chunk: ModuleChunk) -> bool:
        """Whether the subject's trace may have come to a chunk; nothing is traced to find out."""
        question = await self._question(document, subject)
        return isinstance(question, Unasked) or any(
            member.first_line == chunk.first_line for member in question.slice.members
        )

    def _is_chosen(self, view: View) -> bool:
        """Whether a view is one of the example set in use."""
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
        """What to ask about a function with an example set, by default the one in use."""
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
            return Unasked("its text is being edited")
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
        """The answer about a subject as it stands in the text now; a stale one when `patience` runs
        out and there is one.
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
                # Not the text but the settings changed: the same question is another one now.
                return await self._view(document, standing, patience)
        if answer is None:
            return Unasked("its text is being edited")
        if answer.question.trace.whole != question.trace.whole:
            return self._seen(answer, module, answer.question, subject)
        return self._seen(answer, module, question, subject)

    async def _views(self, document: Document, patience: float | None) -> list[View]:
        """What is known of every subject of a document, after at most `patience` seconds of waiting
        for fresh answers.
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
        """The view, the places of all that was seen found: of a long function aside."""
        if view.is_large:
            await self._aside.run(lambda: view.observed, waiting=True)
        return view

    def _last_traced(self, view: View) -> View | None:
        """The last trace of a function that can now not be traced, seen in the text of now."""
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
        """The answer in the module; the view of a moment ago where nothing changed, for moving
        spans takes time.

        Args:
            failed: the newest answer, when it is an error and this is one before it.
            role: which of a function's answers this is: they are kept side by side.
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
            question, self._projects.of(question.path).trace, waiting=waiting
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
        """After a pause in the typing, trace what is not known and tell the owner."""
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
                # Another question about the function took this one's place, such as one of an older
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
        """Compile what is traced for the first target, one function after another, where that is
        shown.
        """
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
    """End tasks whose answers nobody wants any more, errors included."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _below(root: str, path: str) -> PurePosixPath:
    """The path as patterns of settings see it: from the root, with `/` on every system."""
    return PurePosixPath(os.path.relpath(path, root).replace(os.sep, "/"))


def _by_closeness(subjects: Sequence[Subject], own: Subject | None) -> list[Subject]:
    """The subject that holds the cursor first, then the others: a helper's expressions were seen in
    their traces.
    """
    return [*([own] if own is not None else []), *(s for s in subjects if s is not own)]
