"""JX460: the processes of a job trace different programs, and then wait for each other."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.fixing.remedy import Remedy
from jaxsight.rules.jx460_differing_processes.deciding import deciding
from jaxsight.rules.rule import Decides, DifferingPrograms, Rule
from jaxsight.rules.violation import NodeViolation, Violation
from jaxsight.rules.wording import quoted, short
from jaxsight.source.text import Edit

RULE = Rule(
    "JX460",
    "differing-processes",
    "Processes of a job trace different programs.",
    severity="warning",
    unless="JX414",
)


@dataclass(frozen=True, slots=True)
class Unordered:
    """The order of a set decides."""


_MOST = 34
"""Characters of an expression in the message, next to 66 others."""
_HELP = {
    Decides.INDEX: "make the same calls in each process: test the process only to print or save, "
    "and use `jax.lax.axis_index` for what differs between devices",
    Decides.RUN: "let one process decide (`multihost_utils.broadcast_one_to_all`), or pass the "
    "value as an argument",
}
_BY = {
    Decides.INDEX: "{} depends on the process",
    Decides.HASH_SEED: "the order of {} differs",
    Decides.RUN: "{} differs between runs",
}
_UNNAMED = {
    Decides.INDEX: "process {1} traces another program than process 0",
    Decides.HASH_SEED: "processes trace different programs: the order of a set differs",
    Decides.RUN: "processes trace different programs: the same code traces another one each time",
}
_SEEN = {
    Decides.INDEX: "traced as processes 0 and {1} of {0}",
    Decides.HASH_SEED: "traced with two hash seeds, as two processes have them",
    Decides.RUN: "traced twice as the same process with the same hash seed",
}


@RULE.explains_processes
def explain(differing: DifferingPrograms) -> NodeViolation | Violation:
    """Name the branch, the set or the value that decides which program is traced."""
    decides, numbers = differing.decides, (differing.processes, differing.process)
    difference = "captured arrays differ"
    if differing.primitive:
        difference = f"their programs differ from `{differing.primitive}` on"
    notes = (
        f"{_SEEN[decides].format(*numbers)}: {difference}",
        "processes wait for each other while compiling and in collectives, so the job hangs",
    )
    node = deciding(differing)
    if node is None:
        message = _UNNAMED[decides].format(*numbers)
        return Violation(message, help=_help(decides, ""), notes=notes)
    text = ast.unparse(node)
    named = _BY[decides].format(quoted(text, most=_MOST))
    message = f"processes trace different programs: {named}"
    data = Unordered() if decides is Decides.HASH_SEED else None
    return NodeViolation(node, message, help=_help(decides, text), notes=notes, data=data)


def _help(decides: Decides, text: str) -> str:
    return _HELP.get(decides, f"iterate in the same order everywhere: `sorted({short(text)})`")


# The fix: iterate over the elements of a set in their own order.


def candidates(context: FixContext) -> Iterator[Candidate]:
    """Yield `sorted(names)` for a set, and for a list or tuple of one."""
    node = context.node
    if not isinstance(context.finding.data, Unordered) or not isinstance(node, ast.expr):
        return
    match node:
        case ast.Call(func=ast.Name(id="list" | "tuple"), args=[ast.expr() as elements]):
            pass
        case elements:
            pass
    text = f"sorted({context.text(elements)})"
    yield Candidate(f"Iterate over `{text}`", (Edit(context.range(node), text),))


REMEDY = Remedy("`sorted(names)`", candidates)
