"""Run the rules on a program, and place what they find in the text."""

from __future__ import annotations

import ast
import functools
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from jaxsight.features.findings.failures import finding_from
from jaxsight.figures.figures import AnyFigures, Figures
from jaxsight.queries.programs.located_figures import EquationRanges, Refused
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules import RULES
from jaxsight.rules.finding import Finding, Place, finding_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import CompileTimes, FindInProgram, Rule, Violation
from jaxsight.rules.text.statements import Statement
from jaxsight.rules.text.traced import traced_module
from jaxsight.source import differentiated
from jaxsight.source.module import Module
from jaxsight.source.statements import TopLevelStatement, tree_of
from jaxsight.source.text import Range, SourceText
from jaxsight.targets.target import Target
from jaxsight.text.parsing import literal_in
from jaxsight.wire.messages.compiling import Folding, Incomplete
from jaxsight.wire.messages.inputs import InputSpec, TreeSpec, ValueSpec
from jaxsight.wire.messages.replies import Outlined, Traced
from jaxsight.wire.program import Body, Step

log = logging.getLogger(__name__)

TOO_LARGE = "JX914"


def of_program(
    view: View, outlined: Outlined, codes: Iterable[str], target: Target | None = None
) -> list[Finding]:
    """Return the findings of the wanted codes in the traced program.

    Args:
        view: the function.
        outlined: its program.
        codes: of the rules.
        target: what it is meant to run on, where that is known.
    """
    rules = [(RULES[code], find) for code in codes if (find := RULES[code].in_program)]
    return _judged(view, outlined, None, rules, target=target).findings


@dataclass(frozen=True, slots=True)
class Judged:
    """The findings in a program, or in a target's kernels."""

    findings: list[Finding] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    """The codes of rules that read a figure which only a complete compile has."""


def of_kernels(
    view: View,
    outlined: Outlined,
    result: AnyFigures | Refused,
    codes: Iterable[str],
    folding: Folding | None = None,
) -> Judged:
    """Return the findings of the wanted codes in a target's kernels.

    If it was not compiled, there are none but that it does not compile in time.

    Args:
        folding: the measured times of constant folding. If the program was compiled without
            constant folding, only the rule about it applies: the kernels of the user's own compile
            differ.
    """
    measured = None
    if isinstance(result, Refused):
        measured = CompileTimes.SLOWNESS
    elif result.is_unfolded:
        measured = CompileTimes.FOLDING
    wanted = (RULES[code] for code in codes if measured in (None, RULES[code].measures))
    rules = [(rule, find) for rule in wanted if (find := rule.in_kernels)]
    return _judged(view, outlined, result, rules, folding)


def of_module(module: Module) -> Iterator[Finding]:
    """Yield what the text of all statements together shows."""
    chunks = [chunk for chunk in module.chunks if chunk.broken is None]
    statements = _statements_of(module)
    for rule in RULES.values():
        if rule.in_module is None or rule.word not in module.text:
            continue
        try:
            violations = list(rule.in_module(statements))
        except Exception:
            log.exception("%s failed", rule.code)
            continue
        for violation in violations:
            chunk = chunks[violation.statement]
            range = SourceText(chunk.text).range(violation.violation.node)
            yield finding_from(rule, range.shifted(chunk.first_line), violation.violation)


def _statements_of(module: Module) -> list[Statement]:
    """Return the statements of a module that have no syntax error."""
    statements = []
    for chunk in module.chunks:
        if chunk.broken is None:
            cached = _statements.get(chunk.statement)
            if cached is None:
                tree = functools.partial(tree_of, chunk.text)
                cached = _statements[chunk.statement] = Statement(chunk.text, tree)
            statements.append(cached)
    return statements


_statements: WeakKeyDictionary[TopLevelStatement, Statement] = WeakKeyDictionary()
"""The statements that are in use, with what rules read off them."""


def of_size(module: Module) -> Iterator[Finding]:
    """Yield the parts of a file that are too large to be analyzed."""
    for problem in (each for each in module.syntax_problems if each.too_large):
        yield finding_of(TOO_LARGE, problem.range, problem.message)


def _judged(
    view: View,
    outlined: Outlined,
    result: AnyFigures | Refused | None,
    rules: Iterable[tuple[Rule, FindInProgram]],
    folding: Folding | None = None,
    target: Target | None = None,
) -> Judged:
    """Run rules on a program."""
    reply, judged = view.answer.reply, Judged()
    if not isinstance(reply, Traced):
        return judged
    places = EquationRanges(view, {step.path: step.span for step in _steps(outlined.program.body)})
    compiled = result.compiled if isinstance(result, Figures) else None
    lowered = result.lowered if result is not None else None
    distribution = lowered.request.distribution if lowered is not None else None
    program_view = ProgramView(
        name=view.subject.name,
        program=outlined.program,
        folds=outlined.folds,
        folding=folding,
        slow_seconds=result.slow_seconds if result is not None else None,
        exact=not view.caveats,
        numbers=frozenset(
            _numbers([argument.spec for argument in view.answer.question.trace.arguments])
        ),
        differentiated=differentiated.parameters(view.module, view.subject.name),
        chosen=differentiated.parameters(view.module, view.subject.name, chosen=True),
        gradients=differentiated.gradients(view.module),
        warnings=reply.warnings,
        quote=places.text,
        around=places.ancestors,
        syntax=places.syntax,
        functions=places.functions,
        calls=outlined.calls,
        assigned=functools.partial(_assigned, view.module),
        is_staged=lambda name: traced_module(_statements_of(view.module)).is_staged(name),
        target=result.target if result is not None else target,
        compiled=compiled,
        meshes=distribution.meshes if distribution is not None else (),
    )
    notes: tuple[str, ...] = ()
    if compiled is not None and compiled.devices > 1:
        notes = (f"figures are those of one of {compiled.devices} devices",)
    for rule, find in rules:
        try:
            violations = [found for found in find(program_view) if found is not None]
        except Incomplete:
            judged.incomplete.append(rule.code)
            continue
        except Exception:
            log.exception("%s failed on %s", rule.code, view.subject.name)
            continue
        reported: set[Range] = set()
        for violation in violations:
            finding = _placed(rule, view, places, violation, notes)
            # One expression may make many equations, in an unrolled loop or for a tree of arrays.
            if finding.range not in reported or not (violation.at or violation.span):
                reported.add(finding.range)
                judged.findings.append(finding)
    return judged


def _assigned(module: Module, name: str) -> ast.expr | None:
    """Return what the only statement that binds a name assigns to it."""
    match module.bindings.definers.get(name):
        case [index] if module.chunks[index].broken is None:
            match tree_of(module.chunks[index].text).body:
                case [ast.Assign(targets=[ast.Name()], value=value)]:
                    return value
                case [ast.AnnAssign(target=ast.Name(), value=value)]:
                    return value
    return None


def _numbers(specs: Iterable[InputSpec]) -> Iterator[str]:
    """Yield the type of each Python number in example inputs, including those in displays."""
    for spec in specs:
        if isinstance(spec, TreeSpec):
            yield from _numbers(spec.children)
        elif isinstance(spec, ValueSpec) and spec.literal:
            try:
                value = literal_in(spec.source)
            except ValueError:
                continue
            if type(value) in (int, float, complex):
                yield type(value).__name__


def _placed(
    rule: Rule, view: View, places: EquationRanges, violation: Violation, notes: Iterable[str]
) -> Finding:
    """Return the finding of a violation at its place in the text."""
    if violation.span is not None:
        range = view.range_of(violation.span)
    else:
        range = places.of(violation.at) if violation.at else None
    related = (
        Place(view.answer.question.path, at, words)
        for equation, words in violation.related
        if (at := places.of(equation)) is not None and at != range
    )
    at = range or view.name_range
    return finding_from(rule, at, violation, notes=notes, related=related, stale=view.stale)


def _steps(body: Body) -> Iterator[Step]:
    """Yield the steps of a program, inner ones included."""
    for step in body.steps:
        yield step
        for inner in step.bodies:
            yield from _steps(inner)
