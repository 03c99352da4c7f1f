"""JX407: a donated buffer fits no result, so it saves no memory."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.text.expressions import integer
from jaxsight.rules.text.jitted import positional
from jaxsight.rules.wording import cut, quoted
from jaxsight.source.text import Edit, Range
from jaxsight.text.units import size

RULE = Rule(
    __name__,
    "Donated buffer cannot be reused for any result.",
    severity="warning",
    of_whole_program=True,
)


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the donated inputs without a result left for them; `jit` pairs by shape and dtype."""
    program, flow = view.program, view.flow
    unmatched = Counter((v.dtype, v.shape) for v in map(flow.value, program.body.outputs))
    for index in program.donated:
        if index >= len(program.body.inputs):
            continue
        value = flow.values[program.body.inputs[index]]
        kind = value.dtype, value.shape
        if unmatched[kind] > 0:
            unmatched[kind] -= 1
            continue
        name = quoted(value.said, f"argument {index}", most=24)
        yield Violation(
            f"donated {name} cannot be reused: no result has type {cut(value.text, 28)}",
            help=f"do not donate it, or return a result of type {value.text}",
            notes=(f"its buffer takes {size(value.bytes)}, and the caller loses it for nothing",),
            data=value.said,
        )


# The fix: do not donate a buffer that fits no result.

_DONATES = ("donate_argnums", "donate_argnames")


@RULE.fixes("the argument without its donation")
def candidates(context: FixContext, path: str) -> Iterator[Candidate]:
    """Yield the decorator without the argument in `donate_argnums` or `donate_argnames`.

    The keyword goes too if nothing else is in it.

    Args:
        context: the finding.
        path: that of the input, `x` or `params['w']`; empty where it is unknown.
    """
    function, named = context.subject, re.match(r"\w+", path)
    if function is None or named is None:
        return
    title = f"Do not donate `{named[0]}`"
    names = positional(function)
    for decorator in function.decorator_list:
        for key in decorator.keywords if isinstance(decorator, ast.Call) else ():
            if key.arg not in _DONATES or not isinstance(decorator, ast.Call):
                continue
            donated = key.value.elts if isinstance(key.value, ast.Tuple | ast.List) else [key.value]
            usable = [argument for argument in donated if _name(argument, names) != named[0]]
            if donated and not usable:
                yield Candidate(title, (_without(context, decorator, key),))
            elif len(usable) < len(donated):
                texts = ", ".join(map(context.text, usable)) + "," * (len(usable) == 1)
                yield context.replaced(key.value, f"({texts})", title, same=True)


def _name(node: ast.expr, names: Sequence[str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    index = integer(node)
    return names[index] if index is not None and -len(names) <= index < len(names) else ""


def _without(context: FixContext, call: ast.Call, key: ast.keyword) -> Edit:
    """Delete a keyword of a call, with the comma before it, or after it if it is the first."""
    parts = context.arguments(call)
    extent = context.range(key)
    index = parts.index(extent)
    if index:
        return Edit(Range(parts[index - 1].end, extent.end), "")
    end = parts[1].start if len(parts) > 1 else extent.end
    return Edit(Range(extent.start, end), "")
