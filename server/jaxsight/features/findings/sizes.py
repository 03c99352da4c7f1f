"""Findings about the sizes of a traced function: annotations that differ, sizes that are fixed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from jaxsight.queries.sizes.exploring import FixedSize
from jaxsight.queries.traces.located_answer import View
from jaxsight.rules.finding import Finding, finding_of
from jaxsight.rules.rule import AnnotatedFunction, Rule
from jaxsight.source.statements import tree_of
from jaxsight.source.text import Range, SourceText
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
    try:
        definitions = (
            node
            for node in ast.walk(tree_of(chunk.text))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and (node.name, node.lineno) == (name, line)
        )
        definition = next(definitions, None)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    if definition is None:
        return
    source = SourceText(chunk.text)

    def range_of(node: ast.expr | ast.alias) -> Range:
        return source.range(node).shifted(chunk.first_line)

    def seen(target: ast.expr) -> str:
        observation = view.observed.get(range_of(target))
        if observation is None or observation.more or len(observation.values) != 1:
            return ""
        return view.seen(observation)[0].text

    names = {reply.outputs: view.size_names.outputs or reply.outputs}
    for observation in view.observed.values():
        texts = (value.text for value in view.seen(observation))
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
            yield finding_of(
                rule.code,
                range_of(violation.node),
                violation.message,
                help=violation.help,
                notes=violation.notes,
            )


def of_fixed_size(view: View, fixed: FixedSize, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Yield the finding of a size that a function traces with as given only.

    It is at the expression that fails with another size, or at the function's name.
    """
    failed = fixed.failed
    view.add_texts(failed.reused)
    places = [
        place
        for frame in failed.failure.frames
        if frame.span is not None and (place := view.range_of(frame.span)) is not None
    ]
    error = view.words(failed.failure.message).partition("\n")[0]
    for rule in rules:
        if rule.explain_size is None:
            continue
        violation = rule.explain_size(fixed.name, fixed.size, fixed.tried, error)
        finding = finding_of(
            rule.code,
            places[-1] if places else view.name_range,
            violation.message,
            help=violation.help,
            notes=violation.notes,
        )
        yield replace(finding, stale=view.stale)


def _items(text: str) -> tuple[str, ...]:
    """Return the items of a tuple of arrays, or the text of another result."""
    inner = text.removeprefix("(").removesuffix(")")
    if f"({inner})" != text or "(" in inner or "{" in inner:
        return (text,)
    return tuple(item for part in re.split(r", (?![^\[]*\])", inner) if (item := part.strip(", ")))
