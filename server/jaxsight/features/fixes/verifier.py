"""Verify that a candidate helps: apply it in memory, trace, run, compile and check it again.

It is run against the original. Verdicts are cached by content: the same change of the same function
is tried once, regardless of its place.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from itertools import islice

from jaxsight.features.findings import failures, run_rules
from jaxsight.features.fixes import waits
from jaxsight.figures.figures import AnyFigures, Figures
from jaxsight.figures.summary import devices
from jaxsight.files.texts import Version
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.memory import Cache
from jaxsight.queries.programs.compile_cache import TraceGone
from jaxsight.queries.programs.located_figures import Refused
from jaxsight.queries.sandbox import Sandbox
from jaxsight.queries.traces.located_answer import Answer, View
from jaxsight.queries.traces.query import Question, ask
from jaxsight.queries.traces.traces import named
from jaxsight.rules import RULES, Table
from jaxsight.rules.finding import Finding
from jaxsight.rules.fixing import figures
from jaxsight.rules.fixing.context import Candidate, FixContext, UntracedText, applied
from jaxsight.rules.fixing.figures import FormCosts
from jaxsight.rules.program.work import is_worth_measuring
from jaxsight.rules.rule import CompileTimes, Proof, Remedy
from jaxsight.source.module import Module
from jaxsight.source.text import Edit
from jaxsight.targets.target import Target
from jaxsight.wire.messages.compiling import Folding, Incomplete
from jaxsight.wire.messages.replies import Compared, Traced
from jaxsight.wire.messages.requests import Trace
from jaxsight.workers.request_queue import Priority
from jaxsight.workers.results import Died

FIXES: Mapping[str, Remedy] = Table(
    lambda: {code: rule.remedy for code, rule in RULES.items() if rule.remedy is not None}
)


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Return the changes to try for a finding, the best first."""
    propose, data = FIXES[context.finding.code].propose, context.finding.data
    if len(signature(propose).parameters) == 1:
        return propose(context)
    return propose(context, data) if data is not None else iter(())


log = logging.getLogger(__name__)

_KEPT = 512
"""Verdicts that are kept, each a few strings; a file has few findings with a few candidates."""
_LONGEST_TRADE = 2.0
"""Factor by which a program may become slower for its fix's benefit, a choice: more is no trade."""
_NOT_COMPARED = "it could not be compared"
_SETS = 4
"""Example sets of a function with which a change is tried, a choice: each costs two traces."""
_TRIED = 6
"""Candidates for a finding that are tried, the best first: a choice, each costs traces."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A verified change.

    It is `safe` if values, types and parameters of the function stay the same for all callers, and
    no more kernels are launched.
    """

    finding: Finding
    title: str
    edits: tuple[Edit, ...]
    safe: bool
    action: str
    """The title without the effect."""


@dataclass(frozen=True, slots=True)
class _Verdict:
    """Why a candidate is dropped, or its effect."""

    dropped: str = ""
    effect: str = ""
    costs: bool = False
    """It launches more kernels than before."""
    untold: bool = False
    """It is dropped because it could not be checked."""
    hopeless: bool = False
    """All candidates will fail: running the function does not end, or ends the process."""


@dataclass(eq=False, slots=True)
class FixVerifier:
    """The verified fixes of a session."""

    engine: Engine
    _verdicts: Cache[object, _Verdict] = field(default_factory=lambda: Cache(size=_KEPT))
    _unharmed_by: Cache[tuple[str, str], tuple[_Verdict, Mapping[str, Version]]] = field(
        default_factory=lambda: Cache(size=_KEPT)
    )
    """Verdicts on other functions, by both questions, with the files that they were made of."""

    async def fix(
        self, sandbox: Sandbox, view: View, finding: Finding, target: Target | None
    ) -> Fix | None:
        """Return the first candidate for a finding that is shown to help.

        Args:
            target: the target to compile for, if any.
        """
        name = target.name if target is not None else ""
        context = FixContext.of(view, finding)
        for candidate in islice(candidates(context), _TRIED) if context is not None else ():
            if (question := await self._asked(sandbox, view, candidate.edits)) is None:
                continue
            key = view.answer.key, question.key, finding.code, name
            verdict = self._verdicts.get(key)
            if verdict is None:
                how = (sandbox, view, question, finding, candidate, target)
                verdict = await self._verdict(*how)
                if verdict.untold:  # the tracer had dropped one of the two traces, or ended
                    verdict = await self._verdict(*how)
                self._verdicts.put(key, verdict)
                if verdict.dropped:
                    log.info("%s: %s: dropped: %s", finding.code, candidate.title, verdict.dropped)
            if verdict.hopeless:
                return None
            if not verdict.dropped and await self._harmless(sandbox, view, candidate):
                effect = f" ({verdict.effect})" if verdict.effect else ""
                is_safe = candidate.safe and candidate.same and not verdict.costs
                title = candidate.title
                return Fix(finding, f"{title}{effect}", candidate.edits, is_safe, title)
        return None

    async def in_text(self, module: Module, finding: Finding) -> Fix | None:
        """Return the first candidate for a finding that the text alone proves."""
        return await self.engine.aside.judge(module, lambda: _in_text(module, finding))

    async def _harmless(self, sandbox: Sandbox, view: View, candidate: Candidate) -> bool:
        """Return whether the change leaves other example sets and functions of the file unaffected.

        All of them that reach the changed text must compute the same as before.
        """
        text = applied(view.module.text, candidate.edits)
        chunks = [
            view.module.chunk_at(edit.range.start)
            for edit in candidate.edits
            if not edit.text.startswith("import ")
        ]
        changed = {chunk.first_line for chunk in chunks if chunk is not None}
        own = view.answer.question
        before = Document(own.path, view.module)
        after = Document(own.path, view.module.edited(text))

        judge = functools.partial(self.engine.aside.judge, view.module)

        def asked(name: str, set_name: str) -> list[Question | None]:
            texts = before, after
            return [_question(sandbox, text, name, set_name, own.trace) for text in texts]

        for subject in await judge(lambda: before.subjects(sandbox.project.outside)):
            for example_set in subject.examples.sets[:_SETS]:
                of_set = functools.partial(asked, subject.id, example_set.name)
                first, second = await judge(of_set)
                if first is None or second is None or first.key in (second.key, own.key):
                    continue
                if not any(chunk.first_line in changed for chunk in first.slice.module_chunks):
                    continue
                verdict = await self._unharmed(sandbox, first, second, same=candidate.same)
                if verdict.dropped:
                    log.info("%s: not for %s: %s", candidate.title, subject.name, verdict.dropped)
                    return False
        return True

    async def _unharmed(
        self, sandbox: Sandbox, first: Question, second: Question, *, same: bool
    ) -> _Verdict:
        """Return whether another function can still be traced, and computes the same if it must."""
        key = first.key_on_device, second.key_on_device
        known = self._unharmed_by.get(key)
        if known is not None and sandbox.is_current(known[1]):
            return known[0]
        before, after = await sandbox.trace(first), await sandbox.trace(second)
        if before is None or after is None:
            return _Verdict()
        verdict = _Verdict()
        if isinstance(before.reply, Traced) and not isinstance(after.reply, Traced):
            verdict = _Verdict("it can no longer be traced")
        elif isinstance(before.reply, Traced):
            compared = await sandbox.compare(replace(before, question=first), after)
            if same and not isinstance(compared, Compared):
                verdict = _Verdict(_NOT_COMPARED)
            elif same and isinstance(compared, Compared) and not compared.same:
                verdict = _Verdict(compared.words)
        self._unharmed_by.put(key, (verdict, {**before.versions, **after.versions}))
        return verdict

    async def _asked(self, sandbox: Sandbox, view: View, edits: Sequence[Edit]) -> Question | None:
        return await self.engine.aside.judge(view.module, lambda: _asked(sandbox, view, edits))

    async def _verdict(
        self,
        sandbox: Sandbox,
        view: View,
        question: Question,
        finding: Finding,
        candidate: Candidate,
        target: Target | None,
    ) -> _Verdict:
        """Trace both forms, run both, and compare their findings and figures."""
        before = await sandbox.trace(view.answer.question)
        after = await sandbox.trace(question)
        if before is None or after is None:
            return _Verdict("it could not be traced", untold=True)
        if not view.answer.agrees_with(before.versions.items()):
            return _Verdict("a file that it imports has changed", untold=True)
        if not isinstance(after.reply, Traced):
            view_after = View(after, question.module, after.question, question.subject)
            why = failures.summary(view_after)
            return _Verdict(f"it can no longer be traced: {why}")
        if not isinstance(before.reply, Traced):
            if candidate.same:  # the original is called with values: the result must be the same
                by_values = _judged(await sandbox.compare(before, after), same=True)
                if isinstance(by_values, _Verdict):
                    return by_values
            return _Verdict(effect="can be traced")
        was, now = before.reply.outputs, after.reply.outputs
        if was != now:
            return _Verdict(f"it returns {now} instead of {was}")
        compared = _judged(await sandbox.compare(before, after), same=candidate.same)
        if isinstance(compared, _Verdict):
            return compared
        for complete in (False, True):
            look = functools.partial(self._looked_at, sandbox, target=target, complete=complete)
            with contextlib.suppress(Incomplete):
                first, second = await look(before, finding.code), await look(after, finding.code)
                if first is None or second is None:
                    break
                return _effect(FIXES[finding.code], first, second, compared, target)
        return _Verdict("it could not be compiled", untold=True)

    async def _looked_at(
        self,
        sandbox: Sandbox,
        answer: Answer,
        code: str,
        *,
        target: Target | None,
        complete: bool,
    ) -> _Look | None:
        """Return the findings and figures of one form; `None` if it could not be compiled."""
        question, interpreter = answer.question, sandbox.project.interpreter
        view = View(answer, question.module, question, question.subject)
        outlined = await sandbox.outline(answer)
        if outlined is None or not isinstance(answer.reply, Traced):
            return None
        folding: Folding | None = None
        result: AnyFigures | Refused | None = None
        if target is not None and interpreter is not None:
            how = (answer, target, interpreter.path, sandbox.lower)
            compiling = self.engine.programs.compiling()
            is_measured = RULES[code].measures is CompileTimes.FOLDING
            with contextlib.suppress(TraceGone):
                if is_measured and is_worth_measuring(outlined.folds):
                    folding = await compiling.folding(*how)
            with contextlib.suppress(TraceGone):
                urgency = Priority.BACKGROUND
                result = await compiling.get(*how, complete=complete, urgency=urgency)
        compiled = result.compiled if isinstance(result, Figures) else None
        if RULES[code].in_kernels is not None:
            if result is None or compiled is None:
                return None
            judged = run_rules.of_kernels(view, outlined, result, [code], folding)
            if judged.incomplete and not complete:
                raise Incomplete
            count = len(judged.findings)
        elif RULES[code].in_program is not None:
            count = len(run_rules.of_program(view, outlined, [code], target))
        elif RULES[code].explain_processes is not None:
            if target is None:
                return None
            count = int(await self.engine.processes.difference(answer, target) is not None)
        else:
            count = _count_in_text(question.module, code)
        return count, FormCosts.of(answer.reply, compiled, folding)


def _in_text(module: Module, finding: Finding) -> Fix | None:
    """Return the first candidate that only adds waits, and takes a finding away."""
    if (context := FixContext.of(UntracedText(module), finding)) is None:
        return None
    for candidate in islice(candidates(context), _TRIED):
        with contextlib.suppress(ValueError):
            after = module.edited(applied(module.text, candidate.edits))
            findings = [_count_in_text(each, finding.code) for each in (module, after)]
            if waits.are_all_that_differs(module, after) and findings[1] < findings[0]:
                edits, title = candidate.edits, candidate.title
                return Fix(finding, title, edits, candidate.safe, title)
    return None


def _count_in_text(module: Module, code: str) -> int:
    """Return the number of findings of a code in a text, for which nothing is traced."""
    return sum(found.code == code for found in run_rules.of_module(module))


def _judged(compared: Compared | Died | None, *, same: bool) -> Compared | _Verdict:
    """Return the comparison of two forms, or why the candidate is dropped."""
    if compared is None:
        return _Verdict(_NOT_COMPARED, untold=True)
    if isinstance(compared, Died):
        return _Verdict(compared.message, hopeless=True)
    return _Verdict(compared.words) if same and not compared.same else compared


_Look = tuple[int, FormCosts]
"""The number of findings of one code in one form of a function, and its figures."""


def _effect(
    remedy: Remedy, before: _Look, after: _Look, compared: Compared, target: Target | None
) -> _Verdict:
    """Return the verdict on two forms that compute the same, by their findings and figures.

    A change that leaves the findings is dropped without knowing its memory.

    Raises:
        Incomplete: the verdict needs figures of complete compiles.
    """
    found, remaining = before[0], after[0]
    if remedy.proof is Proof.GONE and remaining >= found:
        return _Verdict("it does not help: the finding remains")
    forms = before[1], after[1]
    words = list(figures.words(*forms, timed=remedy.timed))
    match remedy.proof:
        case Proof.SMALLER:
            helps = figures.smaller(*forms)
        case Proof.FEWER:
            helps = remaining <= found and figures.fewer(*forms)
        case Proof.GONE:
            helps = True
    worse = figures.worse(*forms) - remedy.trades
    too_slow = not remedy.costs_any and figures.too_slow(*forms, _LONGEST_TRADE)
    if not helps or worse or too_slow:
        return _Verdict(f"it does not help: {', '.join(words) or 'no figure changes'}")
    compiled = after[1].compiled
    if compiled is not None and target is not None and words:
        is_said = words[-1].endswith(figures.PER_DEVICE)
        several = " (per device)" if compiled.devices > 1 and not is_said else ""
        words[-1] += f" on {devices(compiled, target)}{several}"
    was, now = compared.nonfinite
    if was != now:
        words.insert(0, f"NaN or infinite gradients {was} → {now}")
    return _Verdict(effect=", ".join(words), costs=figures.more(*forms))


def _asked(sandbox: Sandbox, view: View, edits: Sequence[Edit]) -> Question | None:
    """Return the question about the same function and set in the changed text.

    Returns `None` if there is none, or if it is the same.
    """
    before = view.answer.question
    try:
        text = applied(view.module.text, edits)
    except ValueError:
        return None
    scratch = Document(before.path, view.module.edited(text))
    scratch.looked_into = before.trace.whole
    context = _question(sandbox, scratch, before.subject.id, before.set.name, before.trace)
    return context if context is not None and context.key != before.key else None


def _question(
    sandbox: Sandbox, document: Document, function: str, set_name: str, like: Trace
) -> Question | None:
    """Return the question about a function of a text; with its first set if none has the name.

    It is asked for the devices of another request.
    """
    project = sandbox.project
    subject = named(document.subjects(project.outside), function)
    if subject is None or not subject.examples.sets:
        return None
    sets = subject.examples.sets
    chosen = next((example_set for example_set in sets if example_set.name == set_name), sets[0])
    context = ask(
        document,
        subject,
        chosen,
        project,
        devices=like.devices,
        device=like.device,
    )
    return context if isinstance(context, Question) else None
