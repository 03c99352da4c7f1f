"""JX310: a jaxtyping annotation disagrees with the trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.meshes.divided import array_type
from jaxsight.rules.jx310_annotation_mismatch.annotation import (
    annotation_of,
    items_of,
    mismatch,
)
from jaxsight.rules.rule import AnnotatedFunction, Rule
from jaxsight.rules.text.statements import own_statements
from jaxsight.rules.violation import NodeViolation
from jaxsight.rules.wording import MOST
from jaxsight.text.inert import clause

RULE = Rule(
    "JX310",
    "annotation-mismatch",
    "A jaxtyping annotation disagrees with the traced shape or dtype.",
    severity="warning",
)

_LONGEST = (MOST - len("annotated ``, traced ``")) // 2
"""Characters of each of the two types in a message: a usual one has fewer."""


@RULE.finds_in_annotations
def find(function: AnnotatedFunction) -> Iterator[NodeViolation]:
    """Yield the annotations of a traced function's locals and results that do not hold.

    Names have the sizes that the annotations of parameters give them in this trace, then those of
    the example inputs. Parameters that disagree leave everything in doubt.
    """
    known: dict[str, int | tuple[int, ...]] = {}
    definition, outputs = function.definition, function.outputs
    arguments = definition.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        annotation = annotation_of(argument.annotation)
        traced = array_type(function.parameters.get(argument.arg, ""))
        if annotation is not None and traced is not None and mismatch(annotation, traced, known):
            return
    known = {**function.sizes, **known}
    checked = [
        (statement.annotation, function.seen(statement.target))
        for statement in own_statements(definition.body)
        if isinstance(statement, ast.AnnAssign)
    ]
    items = items_of(definition.returns)
    if items is None:
        checked += (
            [(definition.returns, outputs[0])] if definition.returns and outputs[1:] == () else []
        )
    elif len(items) == len(outputs):
        checked += zip(items, outputs, strict=True)
    for node, text in checked:
        annotation, traced = annotation_of(node), array_type(text)
        if annotation is None or traced is None:
            continue
        if kind := mismatch(annotation, traced, known):
            named, shown = function.named(text), ast.unparse(node).replace("'", '"')
            if isinstance(node, ast.Constant):
                shown = str(node.value)
            yield NodeViolation(
                node,
                f"annotated `{clause(shown, _LONGEST)}`, traced `{clause(named, _LONGEST)}`",
                help="correct the annotation, or the code",
                notes=(
                    f"the {kind} differs",
                    *((f"the traced type is `{text}`",) if named != text else ()),
                ),
            )
