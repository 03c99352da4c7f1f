"""Functions without example inputs, shown with proposals that can be traced: *assumed inputs*.

Nobody asked for these traces, so they are made where nobody waits, those of the visible part of a
file first, and not for long. One that fails is silent. Nothing is shown with inputs that the text
does not tell: these are suggested at the `def`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.proposals.proposals import show
from jaxsight.queries.traces.query import Question
from jaxsight.queries.traces.trace_cache import Superseded
from jaxsight.queries.traces.traces import named
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk, PlacedFunction
from jaxsight.wire.messages.replies import Traced
from jaxsight.workers.supervisor import Priority

if TYPE_CHECKING:
    from jaxsight.queries.proposals.trying import Tried


import re
from collections.abc import Sequence
from pathlib import PurePath

from jaxsight.examples.binding import Signature
from jaxsight.examples.jax_use import JaxUse
from jaxsight.features.inputs import ReachedPlaces
from jaxsight.queries.documents import Subject
from jaxsight.queries.traces.located_answer import Answer
from jaxsight.wire.messages.replies import Failed

log = logging.getLogger(__name__)

BUDGET = 60.0
"""Seconds in which proposals of one text are tried, a choice: less leaves functions without."""
_NAMING = 1.0
"""Seconds that the first hints of a function wait for names of sizes: later, they change again."""


async def assume(engine: Engine, path: str, budget: float = BUDGET, only: str = "") -> None:
    """Try proposals of a document's functions that have no inputs, and show those that trace.

    A refresh is sent for each. With the setting `examplesAssumed` off, lenses offer them.
    With `only`, this is for the function that the user named, whether it is worth it or not, and
    whether its text proves the inputs or not.
    """
    if (document := engine.documents.get(path)) is None:
        return
    settings = engine.projects.of(path).settings
    clock = asyncio.get_running_loop().time
    ends = clock() + budget
    rank = functools.partial(engine.attention.rank, path)
    unreached = engine.dry_runs.unreached(document)
    for name in unreached & document.proposed.keys():
        show(document, name, None)
    proposing = (*_failed(engine, document), *_without(engine, document))
    wanted = [each for each in proposing if each.function.qualname not in unreached]
    if only:
        having = {subject.name for subject in engine.documents.subjects(document)}
        functions = document.module.functions
        wanted = [
            each for each in functions if each.function.qualname == only and only not in having
        ]
    for placed in sorted(wanted, key=lambda each: rank(each.range)):
        if clock() > ends or engine.documents.get(path) is not document:
            return
        name = placed.function.qualname
        try:
            outcome = await _outcome(engine, document, placed)
            wants = settings.examples_assumed and name not in document.hidden
            is_good = outcome is not None and (outcome.is_proved or bool(only and outcome.computes))
            was_shown = name in document.proposed
            is_changed = _suggest(document, name, outcome)
            show(document, name, outcome if wants and is_good else None)
            if name in document.proposed and not await _traces(engine, document, name):
                show(document, name, None)
        except Superseded:
            return
        except Exception:
            log.exception("proposing inputs of %s of %s", name, path)
            return
        if is_good or was_shown or is_changed:
            engine.waiting.refresh(path)


def _suggest(document: Document, name: str, outcome: Tried | None) -> bool:
    """Keep inputs that can be traced, but that the text does not prove; return whether for new."""
    before = document.suggested.pop(name, "")
    if outcome is None or not outcome.computes or outcome.is_proved:
        return bool(before)
    document.suggested[name] = outcome.guess.title
    return document.suggested[name] != before


def is_worth_proposing(engine: Engine, document: Document) -> bool:
    """Return whether a document has functions that would be shown with proposed inputs."""
    return next(_without(engine, document), None) is not None


async def _outcome(engine: Engine, document: Document, placed: PlacedFunction) -> Tried | None:
    """Return the best outcome for a function: that of a call of which some arguments are known.

    With other arguments than these, it would be another call.
    """
    calls = engine.dry_runs.partial(document.path, placed.function.qualname)
    for partial in calls:
        outcome = await engine.proposals.outcome(document, *placed, partial)
        if outcome is not None and outcome.is_proved:
            return outcome
    if placed.function.refused or calls:
        return None
    return await engine.proposals.outcome(document, *placed)


def _without(engine: Engine, document: Document) -> Iterator[PlacedFunction]:
    subjects = engine.documents.subjects(document)
    having = {subject.name for subject in subjects}
    for placed in document.module.functions:
        name = placed.function.qualname
        is_nested = placed.function.refused == "nested" and name not in having
        if is_nested and engine.dry_runs.partial(document.path, name):
            yield placed
    yield from worth_proposing(document, subjects)


def _failed(engine: Engine, document: Document) -> Iterator[PlacedFunction]:
    """Yield the functions whose proposed inputs could be traced before they were edited.

    Those of which a call is known by now are among them.
    """
    for subject in engine.documents.subjects(document):
        if not subject.is_proposed:
            continue
        is_plain = all(example_set.dry_call is None for example_set in subject.examples.sets)
        if is_plain and engine.dry_runs.partial(document.path, subject.name):
            yield subject.placed
            continue
        latest = engine.traces.latest(document, subject)
        if latest is not None and not isinstance(latest.reply, Traced) and not subject.broken:
            yield subject.placed


async def _traces(engine: Engine, document: Document, name: str) -> bool:
    """Return whether a function is traced with proposed inputs; names its sizes, if that is quick.

    Raises:
        Superseded: a newer question about the function arrived meanwhile.
    """
    subject = named(engine.documents.subjects(document), name)
    if subject is None or not subject.is_proposed:
        return True  # it has better inputs by now
    question = await engine.traces.question(document, subject)
    if not isinstance(question, Question):
        return False
    traced = engine.proposals.traced(engine.projects.of(document.path), question)
    if traced is not None:
        engine.traces.cache.adopt(question, traced)
    answer = await engine.traces.answer(question, Priority.BACKGROUND)
    if not isinstance(answer.reply, Traced):
        return False
    naming = asyncio.ensure_future(engine.sizes.explored(answer))
    done, _ = await asyncio.wait([naming], timeout=_NAMING)
    if not done:
        view = engine.traces.located(answer, document.module, question, subject)
        engine.waiting.go_on(naming, view)
    return True


# Which functions are worth proposing example inputs for without being asked.


MOST = 40
"""Functions of one file, a choice: those of most files; each costs a trace."""
_TESTS = re.compile(r"test_.*|.*_test|conftest|tests")
_RUNS = re.compile(
    r"_?(?:main|run|cli|app|fit|train|evaluate|benchmark|demo)"
    r"|_?(?:train_and|run|main|benchmark)_\w+|\w+_loop|test[A-Z]\w*"
)
"""Names of functions that are there to be run: they loop over data, print and save."""
_LOOPS = re.compile(
    r"\b(?:for\b.+\bin\b.*(?:epoch|step|iteration|loader|batches|dataset|tqdm|trange)|while\s+True)"
)
"""The head of a loop over training steps or data."""


def worth_proposing(document: Document, subjects: Sequence[Subject]) -> Iterator[PlacedFunction]:
    """Yield the functions that use JAX and have no example inputs, at most `MOST`.

    Functions that are there to be run are none of them, such as tests, `main` and training loops;
    nor are special methods other than `__call__`.
    """
    module = document.module
    if _TESTS.fullmatch(PurePath(document.path).stem):
        return
    jax_use = JaxUse.of(module)
    if jax_use.uses is None:
        return
    having = {(subject.chunk.first_line, subject.name) for subject in subjects}
    count = 0
    for placed in module.functions:
        chunk, function = placed
        name = function.qualname
        if (chunk.first_line, name) in having or function.refused:
            continue
        if module.defining[name] is not chunk:  # a later one has its proposals
            continue
        if not Signature(function).required or not jax_use.by(chunk, function):
            continue
        if runs_a_program(chunk, function):
            continue
        yield placed
        count += 1
        if count == MOST:
            return


def runs_a_program(chunk: ModuleChunk, function: Function) -> bool:
    """Return whether a function is there to be run, or is called by Python itself."""
    name = function.qualname.rpartition(".")[2]
    if (name.startswith("__") and name != "__call__") or _RUNS.fullmatch(name):
        return True
    lines = chunk.text.split("\n")[function.body_start.line : function.range.end.line + 1]
    return any(_LOOPS.search(line) for line in lines)


# Which of several example sets is shown that the user did not write: one that can be traced.


_MOST = 8
"""Example sets of a function that are tried until one traces: a choice, each costs a trace."""


async def prefer_traced(engine: Engine, document: Document, subject: Subject) -> bool:
    """Make the first set active that can be traced, else the one that gets furthest.

    The user's own sets, and their choice, stay. If no set gets anywhere, a call is known whose
    unknown arguments can be assumed, or the function is a part of another one whose trace shows it,
    they are rejected, so that the function has others or none; returns whether they are.

    Raises:
        Superseded: a newer question about the function arrived meanwhile.
    """
    sets, path = subject.examples.sets[:_MOST], document.path
    is_own = subject.examples.are_written or engine.choices.is_chosen(path, subject)
    if is_own or subject.is_proposed or subject.broken:
        return False
    reached: dict[str, int] = {}
    for example_set in sets:
        question = await engine.traces.question(document, subject, example_set)
        if not isinstance(question, Question):
            return False
        answer = await engine.traces.answer(question, Priority.BACKGROUND)
        if not isinstance(answer.reply, Traced | Failed):
            return False
        if isinstance(answer.reply, Traced):
            reached = {example_set.name: -1}
            break
        reached[example_set.name] = _reach(answer, answer.reply, subject)
    best = max(reached, key=lambda name: reached[name], default=None)
    is_traced = any(reach < 0 for reach in reached.values())
    # What a dry run shows of a training loop is known; nothing is assumed of it.
    has_partial = not runs_a_program(subject.chunk, subject.function) and bool(
        engine.dry_runs.partial(path, subject.name)
    )
    has_others = has_partial or await _is_shown_by_another(engine, document, subject)
    if best is not None and not is_traced and (reached[best] == 0 or has_others):
        meaning = await engine.proposals.meaning(document, subject.chunk, subject.function)
        _, before = document.rejected.get(subject.id, ("", frozenset()))
        failed = frozenset(each.outside for each in sets if each.outside is not None)
        document.rejected = {**document.rejected, subject.id: (meaning, before | failed)}
        return True
    if best is not None:
        engine.choices.prefer_set(path, subject, best)
    return False


async def reconsider(engine: Engine, document: Document) -> None:
    """Take up rejected sets of functions that have changed since."""
    if not document.rejected:
        return
    module = document.module
    functions = dict(zip(module.ids, module.functions, strict=True))
    kept = {
        name: (meaning, sets)
        for name, (meaning, sets) in document.rejected.items()
        if name in functions
        and await engine.proposals.meaning(document, *functions[name]) == meaning
    }
    if kept != document.rejected:
        document.rejected = kept


async def _is_shown_by_another(engine: Engine, document: Document, subject: Subject) -> bool:
    """Return whether the trace of another function shows one that is a part of it."""
    if not any(s.outside and s.outside.compiled == "inside" for s in subject.examples.sets):
        return False
    views = await engine.traces.cached_views(document)
    others = [view for view in views if view.is_traced and view.subject.id != subject.id]
    return bool(ReachedPlaces(others).by(subject.placed))


def _reach(answer: Answer, failed: Failed, subject: Subject) -> int:
    """Return how many expressions of a function a failed trace has seen."""
    first, last = subject.function.body_start.line, subject.function.range.end.line
    own = subject.chunk.id
    chunks = {own, *(reused.executed for reused in failed.reused if reused.asked == own)}
    return sum(
        observation.span.chunk in chunks and first < observation.span.line <= last + 1
        for observation in answer.observations
    )
