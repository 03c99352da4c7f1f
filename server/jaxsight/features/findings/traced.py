"""Findings about the sizes of a traced function: annotations that differ, sizes that are fixed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.examples.problems import quoted
from jaxsight.features.findings import failures
from jaxsight.queries.documents import Document, Subject
from jaxsight.queries.dry_runs.own_program import LocatedError
from jaxsight.queries.engine import Engine
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.explain_failure import explain
from jaxsight.rules.finding import Finding, Severity, finding_of
from jaxsight.rules.rule import AnnotatedFunction, Rule
from jaxsight.source.text import Range, SourceText
from jaxsight.text.parsing import module_in
from jaxsight.wire.messages.replies import Traced

_TRANSPARENT = re.compile(
    r"(?:\w+\.)*(?:jit|filter_jit|jaxtyped|beartype|typechecked|typechecker|staticmethod|"
    r"classmethod|property|override|checkpoint|remat)(?:\(.*\))?|(?:\w+\.)*partial\((?:\w+\.)*jit\b.*",
    re.DOTALL,
)
"""Decorators after which a function has the shapes of its annotations."""


def of_annotations(view: View, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Yield the jaxtyping annotations of a function that its trace disagrees with."""
    reply, function = view.answer.reply, view.subject.function
    chunk = view.subject.chunk
    if not isinstance(reply, Traced) or view.stale or "[" not in chunk.text:
        return
    if not all(_TRANSPARENT.fullmatch(text.strip().lstrip("@")) for text in function.decorators):
        return
    name, line = function.qualname.rpartition(".")[2], function.name_range.start.line + 1
    if (tree := module_in(chunk.text)) is None:
        return
    definitions = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.name, node.lineno) == (name, line)
    )
    if (definition := next(definitions, None)) is None:
        return
    source = SourceText(chunk.text)

    def range_of(node: ast.expr | ast.alias) -> Range:
        return source.range(node).shifted(chunk.first_line)

    def seen(target: ast.expr) -> str:
        observation = view.observed.get(range_of(target))
        if observation is None or observation.more or len(observation.values) != 1:
            return ""
        return view.values(observation)[0].text

    names = {reply.outputs: view.size_names.outputs or reply.outputs}
    for observation in view.observed.values():
        texts = (value.text for value in view.values(observation))
        names |= zip(texts, view.named(observation), strict=True)
    annotated = AnnotatedFunction(
        definition,
        dict(reply.parameters),
        _items(reply.outputs),
        seen,
        dict(view.answer.question.set.sizes),
        lambda text: names.get(text, text),
    )
    for rule in rules:
        for violation in rule.in_annotations(annotated) if rule.in_annotations else ():
            yield failures.finding_from(rule, range_of(violation.node), violation)


def _items(text: str) -> tuple[str, ...]:
    """Return the items of a tuple of arrays, or the text of another result."""
    inner = text.removeprefix("(").removesuffix(")")
    if f"({inner})" != text or "(" in inner or "{" in inner:
        return (text,)
    return tuple(item for part in re.split(r", (?![^\[]*\])", inner) if (item := part.strip(", ")))


# Report example inputs of nested functions that no trace calls.


CODE = "JX911"
_LOCALS = ".<locals>."


def unused_nested(subjects: Sequence[Subject], views: Sequence[View]) -> Iterator[Finding]:
    """Yield a finding for each nested function that no trace calls, once all traces are known."""
    nested = [subject for subject in subjects if _LOCALS in subject.name and subject.examples.sets]
    by_name = {view.subject.name: view for view in views}
    outer_names = {subject.name for subject in subjects if _LOCALS not in subject.name}
    for subject in nested:
        if subject.broken or subject.examples.source != "docstring":
            continue
        outer = subject.name.partition(_LOCALS)[0]
        around = by_name.get(outer)
        if outer in outer_names and (around is None or not around.is_traced or around.stale):
            continue  # The enclosing function has an error or is not traced yet.
        if any(not view.stale and _calls(view, subject) for view in views):
            continue
        inner = subject.name.rpartition(".")[2]
        message = f"unused example inputs of nested function {quoted(inner)}"
        if around is not None:
            help = f"add example inputs to a function that calls `{inner}`"
            notes = (f"`{outer}` is traced, but does not call `{inner}`",)
        else:
            help = f"add example inputs to `{outer}`"
            notes = ("a nested function cannot be traced by itself",)
        line = subject.examples.sets[0].line
        heading = Range.of_line(line, subject.chunk.text.split("\n")[line])
        place = subject.placed.place(heading)
        yield finding_of(CODE, place, message, help=help, notes=notes)


def _calls(view: View, subject: Subject) -> bool:
    """Return whether a trace entered the body of a function."""
    body = subject.body
    parameters = {
        subject.placed.place(parameter.range) for parameter in subject.function.parameters
    }
    return any(place in parameters or body.holds(place) for place in view.observed)


# Errors that a file's own program raises, as findings at the innermost line of the file.


_CONDITION = "a statement before it did not run here as it does in the program"


def raised(
    engine: Engine, document: Document, views: Sequence[View], known: Sequence[Finding]
) -> list[Finding]:
    """Return the errors of the file's own program that are not known, as those of a trace."""
    found = _raised(engine, document, views)
    return [each for each in found if not any(other.repeats(each) for other in known)]


def _raised(engine: Engine, document: Document, views: Sequence[View]) -> Iterator[Finding]:
    """Yield the errors of the file's own program.

    A trace of the function that fails knows the types of the operands, so its words are better.
    """
    is_stale = not engine.dry_runs.is_current(document)
    explained = [each for view in views if not view.is_traced for each in failures.findings(view)]
    for error in engine.dry_runs.errors(document):
        found = _error(error, document)
        same = (each for each in explained if each.range == found.range and each.code == found.code)
        if (better := next(same, None)) is not None:
            message, help, notes = better.message, better.help, better.notes
            found = replace(found, message=message, help=help, notes=notes)
        if not error.is_certain:
            found = replace(found, notes=(*found.notes, _CONDITION))
        yield replace(found, stale=is_stale)


def _error(error: LocatedError, document: Document) -> Finding:
    module, failure = document.module, error.failure
    _, range = error.places[-1]
    rule, violation = explain(failure, module.slice_text(range), module.line(range.start.line))
    related = failures.related_places(failure, document.path, error.places)
    severity = Severity.ERROR if error.is_certain else Severity.INFORMATION
    return failures.finding_from(rule, range, violation, severity=severity, related=related)
