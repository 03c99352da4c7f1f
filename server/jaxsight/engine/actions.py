"""Code actions that need no trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxsight.engine import examples
from jaxsight.engine.answers import Action
from jaxsight.engine.documents import Subject
from jaxsight.engine.module import Module
from jaxsight.engine.text import Range

ADD_EXAMPLES = "refactor.rewrite.jaxsight.addExamples"


def add_examples(module: Module, subjects: Sequence[Subject], range: Range) -> Iterator[Action]:
    """*Add example inputs*, for the function at the range when it has none."""
    found = module.function_at(range.start)
    if found is None:
        return
    chunk, function = found
    has_own = any(
        s.chunk is chunk and s.name == function.qualname and s.examples.source == "docstring"
        for s in subjects
    )
    if has_own or function.refused:
        return
    edit = examples.skeleton(function).shifted(chunk.first_line)
    yield Action(f"Add example inputs to {function.qualname}", ADD_EXAMPLES, (edit,))
