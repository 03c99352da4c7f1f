"""Try proposed example inputs in a tracer.

Nothing runs in a folder that is not trusted.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, replace

from jaxsight.examples import choice
from jaxsight.examples.proposals.inference import infer
from jaxsight.examples.proposals.proposal import ArrayGuess, Proposal, like_fed
from jaxsight.examples.proposals.sources import Library
from jaxsight.examples.sets import OutsideSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.dry_runs.call_facts import PartialCall
from jaxsight.queries.sandbox import Bench
from jaxsight.queries.traces.query import Question, ask
from jaxsight.rules.failure_text import first_sentence
from jaxsight.source.definitions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.text.inert import words
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.wire.messages.requests import FakeDevice

LABEL = "assumed inputs"
"""The name of a proposed example set, for people."""

_MOST_TRIED = 4
"""Proposals of one call that are tried, a choice: each is a trace. Others than the first are like
arrays that the program passes to models."""
_RANKS, _DTYPES = (1, 2, 3, 4), ("float32", "int32")
_SIZES = (61, 67, 71, 73)
"""What is tried for arguments of which only the rest of the call tells something. The sizes are
primes, so that they fit nothing by chance; a choice, as no figure rests on them."""
_MOST_RANKED = 2
"""Arguments that are tried so at once, a choice: two take up to 64 traces."""
_PATIENCE = 60.0
"""Seconds of one trace, for which modules may be imported: as `timeouts.execute`."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of the proposal of a function; `reason` says why it could not be traced."""

    guess: Proposal
    is_traced: bool = False
    reason: str = ""
    trivial: bool = False
    """No equation of the trace depends on an input."""
    partial: PartialCall | None = None
    """The call whose unknown arguments are proposed."""

    @property
    def computes(self) -> bool:
        """Whether the proposal was traced, and something is computed from it."""
        return self.is_traced and not self.trivial

    @property
    def is_proved(self) -> bool:
        """Whether it also has no rank and no structure that the function's text does not tell."""
        return self.computes and not self.guess.unproved

    @property
    def outside_set(self) -> OutsideSet:
        """The proposal as an example set."""
        return outside_set(self.guess, self.partial)


def outside_set(proposal: Proposal, partial: PartialCall | None = None) -> OutsideSet:
    """Return a proposal as an example set, of a call only its unknown arguments."""
    if partial is None:
        return OutsideSet("proposed", LABEL, proposal.text)
    unknown = {name: g for name, g in proposal.examples.items() if name in partial.unknown}
    text = replace(proposal, examples=unknown).text
    dry_call, sizes = partial.dry_call, partial.sizes
    return OutsideSet("proposed", partial.label, text, dry_call=dry_call, sizes=sizes)


async def outcome_of(
    document: Document,
    chunk: ModuleChunk,
    function: Function,
    bench: Bench,
    partial: PartialCall | None = None,
    device: FakeDevice | None = None,
) -> Tried | None:
    """Return what came of the proposal of a function; `None` if it cannot be read.

    Args:
        document: the document.
        chunk: the function's chunk.
        function: the function.
        bench: where it is traced.
        partial: a call of the function whose unknown arguments are proposed.
        device: the device that code sees.
    """
    library = Library(document.path, bench.project.environment)
    known = {name: _as_example(text) for name, text in partial.known} if partial else {}
    first = await asyncio.to_thread(infer, document.module, chunk, function, library, known)
    if first is None:
        return None
    like = like_fed(first, partial.fed) if partial is not None else ()
    outcome = Tried(first, partial=partial)
    attempt = _Attempt(document, chunk, function, bench, partial, device)
    for proposal in itertools.islice((*like, first), _MOST_TRIED):
        outcome = await attempt.of(proposal)
        if outcome.is_traced:
            break
    if partial is not None and partial.known and not outcome.is_proved:
        return await _told_by_traces(attempt, first, partial) or outcome
    return outcome


async def _told_by_traces(attempt: _Attempt, first: Proposal, partial: PartialCall) -> Tried | None:
    """Return the proposal with the only ranks of unknown arguments that can be traced, if any.

    What is known of the call, such as a model, takes no others. A dtype is `float32`, unless it
    takes integers alone.
    """
    names = sorted({*partial.unknown} & first.examples.keys())
    if not 0 < len(names) <= _MOST_RANKED:
        return None
    found: Tried | None = None
    for ranks in itertools.product(_RANKS, repeat=len(names)):
        for dtypes in itertools.product(_DTYPES, repeat=len(names)):
            arrays = (ArrayGuess(_SIZES[:rank], d) for rank, d in zip(ranks, dtypes, strict=True))
            examples = {**first.examples, **dict(zip(names, arrays, strict=True))}
            proved = first.unproved - {*names}
            tried = await attempt.of(replace(first, examples=examples, unproved=proved))
            if tried.computes:
                if found is not None:
                    return None
                found = tried
                break
    return found


def _as_example(shown: str) -> str:
    """Return a shown argument as an example: its type, or the name of its class."""
    name, bracket, _ = shown.partition("(")
    return name if bracket and name.isidentifier() else shown


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A function that is traced with proposals."""

    document: Document
    chunk: ModuleChunk
    function: Function
    bench: Bench
    partial: PartialCall | None
    device: FakeDevice | None

    async def of(self, proposal: Proposal) -> Tried:
        """Trace a proposal."""
        tried = Tried(proposal, partial=self.partial)
        question = self._question(proposal)
        if isinstance(question, str):
            return replace(tried, reason=question)
        try:
            answer = await asyncio.wait_for(self.bench.trace(question), _PATIENCE)
        except TimeoutError:
            return replace(tried, reason=f"tracing took over {_PATIENCE:.0f} s")
        if answer is None:
            return tried
        if answer.wants_whole and not self.document.looked_into:
            self.document.looked_into = True
            return await self.of(proposal)
        match answer.reply:
            case Traced():
                outlined = await self.bench.outline(answer)
                body = outlined.program.body if outlined is not None else None
                inputs = set(body.inputs) if body is not None else set()
                used = body is not None and any(inputs & {*s.operands} for s in body.steps)
                return replace(tried, is_traced=True, trivial=not used)
            case Failed(failure=failure):
                reason = words(first_sentence(failure.message) or failure.type)
                return replace(tried, reason=reason)
        return tried

    def _question(self, proposal: Proposal) -> Question | str:
        """Return the question about a proposal, or why there is none."""
        project, partial = self.bench.project, self.partial
        outside = project.outside
        proposed = choice.of(
            self.function,
            sizes=outside.sizes,
            project=proposal.text if partial is None else None,
            mesh=outside.mesh,
            outside=(outside_set(proposal, partial),) if partial is not None else (),
        )
        subject = Subject(self.chunk, self.function, proposed, self.function.qualname)
        if not (sets := subject.examples.sets):
            problems = subject.examples.problems
            return problems[0].message if problems else "no example inputs"
        question = ask(
            self.document,
            subject,
            sets[0],
            project,
            device=self.device,
            module=self.document.module,
        )
        if not isinstance(question, Question):
            return question.reason
        return replace(question, trace=replace(question.trace, unasked=True))
