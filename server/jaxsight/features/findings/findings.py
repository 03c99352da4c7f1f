"""The findings of a file: which rules look at it, and how long they wait for answers."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from jaxsight.features import inputs
from jaxsight.features.findings import contracts, failures, run_rules, traced
from jaxsight.features.findings.report import one_a_line, report, wanted
from jaxsight.features.hover.text import signature
from jaxsight.features.inlay_hints.functions import SIGN, totals
from jaxsight.features.inlay_hints.hints import needs_kernels
from jaxsight.features.inlay_hints.kind import HintDocument, head
from jaxsight.queries.documents import Document
from jaxsight.queries.engine import Engine
from jaxsight.queries.memory import ProcessDifference
from jaxsight.queries.processes import PROCESSES
from jaxsight.queries.programs.located_figures import Compilation, LocatedFigures
from jaxsight.queries.traces.located_answer import View
from jaxsight.queries.traces.traces import named
from jaxsight.rules import RULES
from jaxsight.rules.finding import Finding, Severity
from jaxsight.rules.rule import CompileTimes, DifferingPrograms, NodeViolation, Rule
from jaxsight.rules.selection import ignored
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range, SourceText
from jaxsight.targets.target import Target
from jaxsight.text.inert import one_line
from jaxsight.text.layout import cut
from jaxsight.text.parsing import module_in
from jaxsight.text.terminal import instruction
from jaxsight.trust.decisions import COMMAND, command
from jaxsight.wire.messages.compiling import Folding
from jaxsight.wire.messages.replies import Outlined, Traced

# The finding of a function whose program differs between the processes of a job.


def of_processes(
    view: View, difference: ProcessDifference, rules: Sequence[Rule]
) -> Iterator[Finding]:
    """Yield the finding at what decides, else where the programs differ, or at the name."""
    module = view.module
    place = view.range_of(difference.span) if difference.span is not None else None
    at = (place or view.name_range).start
    column = len(module.line(at.line)[: at.column].encode())
    if (tree := module_in(module.text)) is None:
        return
    differing = DifferingPrograms(
        difference.decides,
        difference.process,
        PROCESSES,
        difference.primitive,
        module.slice_text(place) if place is not None else "",
        tree,
        (at.line + 1, column),
    )
    for rule in rules:
        if rule.explain_processes is None:
            continue
        violation = rule.explain_processes(differing)
        range = place or view.name_range
        if isinstance(violation, NodeViolation):
            range = SourceText(module.text).range(violation.node)
        yield failures.finding_from(rule, range, violation, stale=view.stale)


CONTRACT_PATIENCE = 0.3
"""Seconds that an editor's findings wait for contracts once all others are known, a choice: most
small functions compile in less. The same applies to targets on other machines, which may be
down."""


_TOGETHER = 3
"""Functions that are looked at together in the terminal: more wait for the same tracer, which keeps
16 traces.
"""


@dataclass(frozen=True, slots=True)
class Findings:
    """The findings of a file, with what the verification of their fixes needs."""

    reported: list[Finding]
    module: Module | None = None
    owners: tuple[tuple[View, Finding], ...] = ()
    """The findings in functions that were traced, each with the function's view."""
    target: Target | None = None
    """The target that functions were compiled for, if any."""


@dataclass(frozen=True, slots=True)
class _Check:
    """How the functions of a file are checked."""

    codes: tuple[str, ...]
    patience: float | None
    """Seconds to wait for each stage; without it, wait for all of them."""
    far: float | None
    """The same for a target on another machine, which may be down, and for other processes."""
    compiled: bool
    """Whether rules about kernels run."""
    names_sizes: bool
    """Whether dimensions are named anyway, for hints."""

    compares_processes: bool
    """Whether functions are traced as processes of a job; else only those that differed before."""


async def findings(
    engine: Engine,
    path: str,
    *,
    patience: float | None = None,
    kernels: bool | None = None,
    only: str = "",
) -> Findings:
    """Return all findings of a file: in example inputs, traces and kernels, or settings.

    Args:
        engine: the engine.
        path: an open document, or a settings file.
        patience: seconds to wait for new traces; without it, wait for all of them.
        kernels: whether functions are compiled for rules about kernels. By default as for hints
            and as an editor asks: contracts whose compiles take longer than `CONTRACT_PATIENCE`
            follow with a `Refresh`.
        only: the function that is traced; without it, all are. The text of all is read.
    """
    if (in_settings := engine.projects.settings_findings(path)) is not None:
        return Findings(in_settings)
    await engine.turns.breathe()
    if (document := await engine.documents.read(path)) is None:
        return Findings([])
    subjects = engine.documents.subjects(document)
    contracted = contracts.checks(engine, document, only)
    views, in_text = await _traced_and_read(engine, document, patience, only)
    project = engine.projects.of(path)
    file = path_in_project(project.root, path)
    settings, in_editor = project.settings, kernels is None
    check = _Check(
        wanted(settings, file),
        patience,
        CONTRACT_PATIENCE if patience is None and in_editor else patience,
        needs_kernels(settings.inlay_hints) if kernels is None else kernels,
        in_editor,
        not in_editor or engine.programs.is_saved(path),  # it takes processes of its own
    )
    looked_at = inputs.without_repeats(views)
    pairs = [(view, error) for view in looked_at for error in failures.reported(view, in_text)]
    together = _TOGETHER if kernels is True else 1
    pairs += await _in_functions(engine, looked_at, check, together)
    owners = {finding: view for view, finding in one_a_line(pairs)}
    in_text = [each for each in in_text if not any(map(each.repeats, owners))]
    all_findings = [*owners, *in_text, *traced.unused_nested(subjects, views)]
    all_findings += [] if only else traced.raised(engine, document, views, all_findings)
    all_findings += await engine.waiting.ready(contracted, check.far, path)
    for finding in all_findings:
        if finding not in owners:
            around = [view for view in views if finding.range.start in view.subject_range]
            owners.update((finding, view) for view in (around or _reaching(finding, views))[:1])
    reported = report(
        document.module,
        subjects,
        all_findings,
        settings,
        file,
        complete=kernels is True and len(views) == len(subjects),
    )
    if in_editor and settings.figures_as_diagnostics:
        reported += _of_figures(engine, document, views)
    return Findings(
        reported,
        document.module,
        tuple((owners[finding], finding) for finding in reported if finding in owners),
        engine.choices.target(path) if check.compiled else None,
    )


def _reaching(finding: Finding, views: Sequence[View]) -> list[View]:
    """Return the functions that a statement outside of functions is run for, such as an import."""
    return [
        view
        for view in views
        if (chunk := view.module.chunk_at(finding.range.start)) is not None
        and chunk in view.answer.question.slice.module_chunks
    ]


def path_in_project(root: str, path: str) -> PurePosixPath:
    """Return the path that patterns of settings match: from the root, with `/` on every system."""
    return PurePosixPath(os.path.relpath(path, root).replace(os.sep, "/"))


_ASKING = 0.002
"""Seconds in which the tracer is asked: the request is written before reading the text blocks."""
_STARTING = 1.0
"""Seconds for first traces before rules are imported, a choice: a start takes 0.6 s in all."""


async def _traced_and_read(
    engine: Engine, document: Document, patience: float | None, only: str
) -> tuple[list[View], list[Finding]]:
    """Return the views of a document, and the findings in its text.

    The text is read while the tracer traces: afterwards, hovers and hints would wait for it.
    """
    module = document.module
    tracing = asyncio.ensure_future(
        _view(engine, document, only) if only else engine.traces.views(document, patience)
    )
    try:
        await asyncio.wait([tracing], timeout=_ASKING if engine.rules.are_ready else _STARTING)
        in_text = await _in_text(engine, document)
        views = await tracing
    finally:
        tracing.cancel()
    if document.module is not module:
        in_text = await _in_text(engine, document)
    return views, in_text


async def _view(engine: Engine, document: Document, function: str) -> list[View]:
    """Return the view of one function, if it can be traced."""
    subject = named(engine.documents.subjects(document), function)
    view = await engine.traces.view(document, subject, None) if subject is not None else None
    return [view] if isinstance(view, View) else []


async def _in_text(engine: Engine, document: Document) -> list[Finding]:
    """Return the findings in the text alone."""
    await engine.rules.ready()
    module = document.module
    in_text = await engine.aside.judge(module, lambda: list(run_rules.of_module(module)))
    return [*in_text, *run_rules.of_size(module)]


async def _in_functions(
    engine: Engine, views: Sequence[View], check: _Check, together: int
) -> list[tuple[View, Finding]]:
    """Return the findings in functions; the tracer works on some while rules look at another."""
    window = asyncio.Semaphore(together)

    async def judged(view: View) -> list[Finding]:
        async with window:
            await engine.turns.breathe()
            return await _in_function(engine, view, check)

    found = await asyncio.gather(*map(judged, views))
    return [(view, each) for view, of_view in zip(views, found, strict=True) for each in of_view]


async def _in_function(engine: Engine, view: View, check: _Check) -> list[Finding]:
    """Return the findings in a traced program and in the first target's kernels.

    A refresh follows for those that take longer.
    """
    if not view.is_traced:
        return []
    path = view.answer.question.path
    outlined = await engine.waiting.within(engine.programs.outline(view), check.patience, view)
    if outlined is None:
        return []
    about_sizes = await _about_sizes(engine, view, check)
    target = engine.choices.target(path)
    codes = [
        code
        for code in check.codes
        if not (RULES[code].of_whole_program and view.compiled_as == "inside")
        and (RULES[code].without_inputs or not view.assumed)
    ]
    in_program = await engine.look(
        view, lambda: run_rules.of_program(view, outlined, codes, target)
    )
    if view.assumed:
        note = inputs.assumed(view.answer.question)
        return [
            replace(found, notes=(*found.notes, note), assumed=inputs.described(view))
            for found in in_program
        ]
    in_program += about_sizes
    in_program += await _about_processes(engine, view, check, target)
    looks_at_kernels = any(RULES[code].in_kernels for code in check.codes)
    if not check.compiled or view.stale or not looks_at_kernels:
        return in_program
    compiling, patience = engine.programs.result(view), check.patience
    if target.host:
        compiling, patience = engine.programs.held_result(view, target), check.far
    result: Compilation | None = await engine.waiting.within(compiling, patience, view)
    if result is None:
        return in_program
    return [*in_program, *await _in_kernels(engine, view, outlined, result, check)]


async def _about_sizes(engine: Engine, view: View, check: _Check) -> list[Finding]:
    """Return the findings about the sizes of a function, which is traced with others for them."""
    if view.stale or view.assumed:
        return []
    rules = [RULES[code] for code in check.codes]
    about_sizes = any(rule.explain_size is not None for rule in rules)
    differing = list(traced.of_annotations(view, rules))
    if not differing and not about_sizes:
        return []
    names_sizes = check.names_sizes or bool(differing)
    exploring = engine.sizes.explored(view.answer, with_names=names_sizes)
    if (explored := await engine.waiting.within(exploring, check.patience, view)) is None:
        return differing
    engine.traces.name_sizes(view)
    mismatches = list(traced.of_annotations(view, rules)) if differing else []
    if explored.fixed is not None:
        mismatches += traced.of_fixed_size(view, explored.fixed, rules)
    return mismatches


async def _about_processes(
    engine: Engine, view: View, check: _Check, target: Target
) -> list[Finding]:
    """Return the finding of a function that is another program in another process of a job."""
    rules = [RULES[code] for code in check.codes if RULES[code].explain_processes is not None]
    if not rules or view.stale or view.compiled_as == "inside":
        return []
    if not check.compares_processes and not engine.processes.has_differed(view.answer, target):
        return []
    comparing = engine.processes.difference(view.answer, target)
    difference = await engine.waiting.within(comparing, check.far, view)
    return [] if difference is None else list(of_processes(view, difference, rules))


async def _in_kernels(
    engine: Engine, view: View, outlined: Outlined, result: Compilation, check: _Check
) -> list[Finding]:
    """Return the findings in the kernels of a compiled function."""
    path = view.answer.question.path
    excluded = engine.projects.of(path).settings.ignored_on(result.target)
    codes = [code for code in check.codes if not ignored(code, excluded)]
    folding: Folding | None = None
    if any(RULES[code].measures is CompileTimes.FOLDING for code in codes):
        measured = engine.programs.folding(view, result)
        folding = await engine.waiting.within(measured, check.patience, view)
    is_unfolded = isinstance(result, LocatedFigures) and result.is_unfolded
    if folding is not None and is_unfolded and not folding.is_ended:
        again = engine.programs.result(view)
        result = await engine.waiting.within(again, check.patience, view) or result
    judge = functools.partial(run_rules.of_kernels, view, outlined, folding=folding)
    first = await engine.look(view, functools.partial(judge, result, codes))
    if not first.incomplete:
        return first.findings
    completing = engine.programs.result(view, result.target, complete=True)
    complete: Compilation | None = await engine.waiting.within(completing, check.patience, view)
    if complete is None:
        return first.findings
    rest = functools.partial(judge, complete, first.incomplete)
    return [*first.findings, *(await engine.look(view, rest)).findings]


# What hints say at the head of a function, as information: for clients that show nothing else.


CODE = "figures"
UNTRUSTED = "untrusted"
"""Neither is a rule, so they cannot be selected or ignored."""

_LONGEST = 100
"""Characters of a message, as of those of rules."""


def _of_figures(engine: Engine, document: Document, views: Sequence[View]) -> Iterator[Finding]:
    """Yield the figures of each traced function, with its types as a note.

    Until its kernels are known, the message has the types. Where nothing may run, there is a
    warning in files that name JAX: such a client has nothing else to show that.
    """
    project = engine.projects.of(document.path)
    if project.held_back:
        if "jax" in document.text:
            start = Range(Position(0, 0), Position(0, 0))
            message = "this file's code does not run, because its folder is not trusted"
            remedy = instruction(command(project.folder), f"run the command `{COMMAND}`")
            yield Finding(UNTRUSTED, Severity.WARNING, start, message, help=remedy)
        return
    settings = project.settings.inlay_hints
    shown = HintDocument(engine, document, views, replace(settings, width=_LONGEST), None)
    by_place = {
        hint.range: one_line(hint.label).removeprefix(SIGN).strip() for hint in totals(shown)
    }
    for view in views:
        if isinstance(view.answer.reply, Traced):
            text = signature(view.subject.name, view.with_sizes(view.answer.reply))
            types = one_line(" ".join(text.split())).replace("( ", "(").replace(", )", ")")
            message = by_place.get(head(view)) or cut(types, _LONGEST)
            notes = (types,) if message != types else ()
            place, is_stale = view.name_range, bool(view.stale)
            yield Finding(CODE, Severity.INFORMATION, place, message, stale=is_stale, notes=notes)
