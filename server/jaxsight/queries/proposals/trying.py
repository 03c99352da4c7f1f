"""Try proposed example inputs in the sandbox until some can be traced.

What a failed trace says guides what is tried next. Nothing runs in a folder that is not trusted.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from jaxsight.examples import choice
from jaxsight.examples.proposals.inference import Inferred, infer
from jaxsight.examples.proposals.proposal import Proposal
from jaxsight.examples.proposals.repairing.errors import Wrong
from jaxsight.examples.proposals.repairing.fed import like_fed
from jaxsight.examples.proposals.repairing.repair import alternatives, enriched, repaired, variants
from jaxsight.examples.proposals.sources import Library
from jaxsight.examples.sets import OutsideSet
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.dry_runs.partial_calls import PartialCall
from jaxsight.queries.proposals.bench import Bench
from jaxsight.queries.traces.query import Question, ask
from jaxsight.rules.failure_text import first_sentence
from jaxsight.source.functions import Function
from jaxsight.source.module import ModuleChunk
from jaxsight.source.statements import tree_of
from jaxsight.text.inert import words
from jaxsight.text.parsing import expression_in
from jaxsight.wire.messages.replies import Failed, Traced
from jaxsight.wire.observations import Failure
from jaxsight.wire.seen_device import SeenDevice
from jaxsight.wire.spans import Span

LABEL = "assumed inputs"
"""The name of a proposed example set, for people."""

MOST_TRIED = 12
"""Proposals of one function that are tried, a choice: each is a trace. They find inputs of 50 in 60
functions of libraries, the first one of 41 (`tests/proposals/measured.md`)."""
MOST_OFFERED = 3  # as many entries of a menu: more would hide other actions
_PATIENCE = 10.0
"""Seconds of one trace, after which the function is given up: a choice, most take milliseconds."""
_FIRST_PATIENCE = 60.0
"""Seconds of the first one, for which modules are imported: as `timeouts.execute`."""


@dataclass(frozen=True, slots=True)
class Tried:
    """The proposals of a function that can be traced, the best first.

    Without any, `guess` is the best one, and `reason` says why it could not be traced. `tried` is
    their number.
    """

    traced: tuple[Proposal, ...]
    guess: Proposal
    reason: str = ""
    tried: int = 0
    trivial: bool = False
    """No equation of the traced proposals depends on an input."""
    is_first: bool = False
    """The first proposal that was tried is the first of `traced`."""
    partial: PartialCall | None = None
    """The call whose unknown arguments are proposed."""


@dataclass(frozen=True, slots=True)
class _Try:
    proposal: Proposal
    traced: bool
    has_content: bool = False
    failure: Failure | None = None
    reason: str = ""


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
    most: int = MOST_TRIED,
    partial: PartialCall | None = None,
    device: SeenDevice | None = None,
) -> Tried | None:
    """Return the proposals of a function that were traced; `None` if it cannot be read.

    Args:
        document: the document.
        chunk: the function's chunk.
        function: the function.
        bench: where they are traced.
        most: how many are tried.
        partial: a call of the function whose unknown arguments are proposed.
        device: the device that code sees.
    """
    library = Library(document.path, bench.project.environment)
    known = {name: _as_example(text) for name, text in partial.known} if partial else {}
    inferred = await asyncio.to_thread(infer, document.module, chunk, function, library, known)
    if inferred is None:
        return None
    search = _Search(document, chunk, function, bench, inferred, partial, device)
    return await search.run(most)


def _as_example(shown: str) -> str:
    """Return a shown argument as an example: its type, or the name of its class."""
    name, bracket, _ = shown.partition("(")
    return name if bracket and name.isidentifier() else shown


@dataclass(frozen=True, slots=True)
class _Repairs:
    """Proposals that follow from a failed one, with the line where it failed and the message."""

    proposals: Iterator[Proposal]
    line: int = -1
    message: str = ""

    def position(self, stack: Sequence[_Repairs]) -> int:
        """Return where they belong: first, after the others of the last failure, or last."""
        if not stack or self.line > stack[-1].line:
            return len(stack)
        if self.line < stack[-1].line:
            return 0
        return len(stack) - (self.message == stack[-1].message)


@dataclass(eq=False)
class _Search:
    """The proposals of one function that were tried, and those that are to be tried."""

    document: Document
    chunk: ModuleChunk
    function: Function
    bench: Bench
    inferred: Inferred
    partial: PartialCall | None
    device: SeenDevice | None
    tries: list[_Try] = field(default_factory=list)
    is_slow: bool = False
    _seen: set[str] = field(default_factory=set)

    async def run(self, most: int) -> Tried:
        """Try proposals, each followed by those that its error suggests."""
        first = self.inferred.proposal
        fed = self.partial.fed if self.partial is not None else ()
        stack: list[_Repairs] = [_Repairs(itertools.chain(like_fed(first, fed), [first]))]
        later = alternatives(self.inferred, first)
        while len(self.tries) < most and not self.is_slow:
            proposal = self._next(stack, later)
            if proposal is None:
                break
            tried = await self._try(proposal)
            if tried is None:
                break
            self.tries.append(tried)
            if tried.has_content:
                stack.clear()
                later = variants(self.inferred, first)
                if len([t for t in self.tries if t.has_content]) >= MOST_OFFERED:
                    break
                most = min(most, len(self.tries) + 3)
            elif tried.traced and not self._good:
                stack.append(_Repairs(enriched(self.inferred, proposal)))
            elif tried.failure is not None and tried.failure.was_refused:
                break
            elif tried.failure is not None and not self._good:
                failure, own = tried.failure, self.chunk.id
                # The line of the function that failed, 0 for its inputs.
                lines = [f.span.line for f in failure.frames if f.span and f.span.chunk == own]
                line = lines[0] if lines and failure.stage == "trace" else 0
                repairs = _Repairs(repaired(self._wrong(proposal, failure)), line, failure.message)
                stack.insert(repairs.position(stack), repairs)
        return self._outcome()

    @property
    def _good(self) -> bool:
        return any(tried.has_content for tried in self.tries)

    def _next(self, stack: list[_Repairs], later: Iterator[Proposal]) -> Proposal | None:
        """Return the next proposal that was not tried yet; repairs of the last one come first."""
        while stack:
            for proposal in stack[-1].proposals:
                if self._is_new(proposal):
                    return proposal
            stack.pop()
        return next((proposal for proposal in later if self._is_new(proposal)), None)

    def _is_new(self, proposal: Proposal) -> bool:
        text = proposal.title
        if self.partial is not None:
            text = outside_set(proposal, self.partial).text
        if text in self._seen:
            return False
        self._seen.add(text)
        return True

    def _outcome(self) -> Tried:
        good = [tried for tried in self.tries if tried.has_content]
        trivial = not good
        if trivial:
            good = [tried for tried in self.tries if tried.traced]
        first = self.tries[0] if self.tries else None
        return Tried(
            tuple(tried.proposal for tried in good[:MOST_OFFERED]),
            self.inferred.proposal,
            "" if good or first is None else first.reason,
            len(self.tries),
            trivial and bool(good),
            bool(good) and good[0] is first,
            self.partial,
        )

    async def _try(self, proposal: Proposal) -> _Try | None:
        """Trace a proposal; `None` if nothing can be traced."""
        question = await self.sandbox_question(proposal)
        if isinstance(question, str):
            return _Try(proposal, traced=False, reason=question)
        patience = _PATIENCE if self.tries else _FIRST_PATIENCE
        try:
            answer = await asyncio.wait_for(self.bench.trace(question), patience)
        except TimeoutError:
            self.is_slow = True
            return _Try(proposal, traced=False, reason=f"tracing took over {patience:.0f} s")
        if answer is None:
            return None
        if answer.wants_whole and not self.document.looked_into:
            self.document.looked_into = True
            return await self._try(proposal)
        match answer.reply:
            case Traced():
                outlined = await self.bench.outline(answer)
                body = outlined.program.body if outlined is not None else None
                inputs = set(body.inputs) if body is not None else set()
                used = body is not None and any(inputs & {*s.operands} for s in body.steps)
                return _Try(proposal, traced=True, has_content=used)
            case Failed(failure=failure):
                reason = words(first_sentence(failure.message) or failure.type)
                return _Try(proposal, traced=False, failure=failure, reason=reason)
        return None

    async def sandbox_question(self, proposal: Proposal) -> Question | str:
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
        sets = subject.examples.sets
        if not sets:
            problems = subject.examples.problems
            return problems[0].message if problems else "no example inputs"
        question = ask(
            self.document,
            subject,
            sets[0],
            root=project.root,
            environment=project.environment,
            patience=project.settings.timeouts.statement,
            device=self.device,
            module=self.document.module,
        )
        if not isinstance(question, Question):
            return question.reason
        return replace(question, trace=replace(question.trace, unasked=True))

    def _wrong(self, proposal: Proposal, failure: Failure) -> Wrong:
        expressions = [self._text(f.span) for f in failure.frames if f.span is not None]
        own = [
            self._text(f.span)
            for f in failure.frames
            if f.span is not None and f.function.endswith(self.function.qualname.rpartition(".")[2])
        ]
        blamed: list[str] = []
        for text in [*reversed(own), *reversed(expressions)]:
            blamed += self._parameters_in(text)
        return Wrong(
            self.inferred,
            proposal,
            failure,
            tuple(dict.fromkeys(blamed)),
            expressions[-1] if expressions else "",
        )

    def _text(self, span: Span) -> str:
        """Return the source of a span of one of the module's chunks."""
        chunk = next((c for c in self.document.module.chunks if c.id == span.chunk), None)
        if chunk is None:
            return ""
        lines = chunk.text.encode().split(b"\n")[span.line - 1 : span.end_line]
        if not lines:
            return ""
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return b"\n".join(lines).decode("utf-8", "replace")

    def _parameters_in(self, text: str) -> Iterator[str]:
        """Yield the parameters that an expression uses, directly or through variables."""
        known = {p.name for p in self.function.parameters}
        tree = expression_in(text)
        if tree is None:
            return
        names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
        for name in names:
            if name in known:
                yield name
        for name in names:
            if name not in known:
                yield from self._origins.get(name, ())

    @functools.cached_property
    def _origins(self) -> dict[str, tuple[str, ...]]:
        """The parameters that each variable of the function is computed from."""
        origins: dict[str, tuple[str, ...]] = {}
        known = {p.name for p in self.function.parameters}
        for node in ast.walk(tree_of(self.chunk.text)):
            match node:
                case ast.Assign(targets=targets, value=value):
                    read = [n.id for n in ast.walk(value) if isinstance(n, ast.Name)]
                    sources = dict.fromkeys(
                        p for n in read for p in ((n,) if n in known else origins.get(n, ()))
                    )
                    for target in targets:
                        for inner in ast.walk(target):
                            if isinstance(inner, ast.Name) and inner.id not in known:
                                origins.setdefault(inner.id, tuple(sources))
        return origins
