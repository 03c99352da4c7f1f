"""JX204: a large loop-invariant array is kept in memory, though it is cheap to compute.

Computed inside the loop body it would take no memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.loops import LoopParts, loop_of
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.program.work import is_cheap
from jaxsight.rules.rule import Proof, Rule, Violation
from jaxsight.source.text import Edit
from jaxsight.text.names import bound_in, read_in
from jaxsight.text.units import MIB, size
from jaxsight.wire.primitives import FUSED
from jaxsight.wire.program import Step

RULE = Rule(
    __name__, "Cheap loop-invariant array kept in memory for a whole loop.", severity="warning"
)
LARGE = MIB // 2
"""Bytes from which an array is reported: reading 512 KiB takes 0.2 µs at 3 TB/s in each iteration.
A choice: lower reports what no device runs short of, higher misses masks of a few hundred rows."""
_SMALLER = 64
"""How many times smaller what it is computed from is: each iteration reads that instead."""
_LOOPS = ("scan", "fori_loop", "while_loop", "map")
_WHOLE = ("dot_general", "conv_general_dilated", "cond", "scan", "while")
"""What reads its operands from memory."""


@RULE.finds_in_kernels
def find(view: ProgramView) -> Iterator[Violation]:
    """Find arrays of 512 KiB or more that the user's loops capture and that are cheap to compute.

    Cheap is what elementwise operations compute from constants, counters and arrays of at most a
    64th of the size.
    """
    flow = view.flow
    kept = [carried for loop in view.on_target.graph.loops for carried in loop.carried]
    for step in flow.steps.values():
        loop = loop_of(flow, step) if view.wrote(step.path, *_LOOPS) else None
        if loop is None:
            continue
        for number in loop.captured.values():
            value = flow.value(number)
            maker = flow.producer(number)
            if value.bytes < LARGE or maker is None:
                continue
            if not is_cheap(flow, number, FUSED, _SMALLER):
                continue
            shape = f"[{','.join(map(str, value.shape))}]"
            if not any(shape in carried.text for carried in kept):
                continue
            if _is_needed_whole(flow, loop, value.text):
                continue
            yield Violation(
                f"loop-invariant array ({size(value.bytes)}) is kept in memory for the whole loop",
                maker.path,
                help="compute it inside the loop body, where it fuses with the code that uses it",
                notes=(
                    f"{value.text} is computed from counters and small arrays alone",
                    f"the loop is {view.quoted(step.path)}",
                ),
                related=((step.path, "the loop"),),
            )


def _is_needed_whole(flow: Flow, loop: LoopParts, text: str) -> bool:
    """Whether the loop's bodies need an array of that type in memory.

    Nothing fuses into a product of matrices, nor into a loop or a conditional of the body's own.
    """

    def goes_on(user: Step) -> bool:
        """Whether a step fuses, and reads at most one array that is not known while compiling."""
        operands = {flow.of(operand) for operand in user.operands}
        unknown = [n for n in operands if flow.values[n].shape and not flow.values[n].is_constant]
        return user.primitive in FUSED and len(unknown) <= 1

    return any(
        user.primitive in _WHOLE
        for number in loop.captured
        if flow.value(number).text == text
        for _, user in flow.forwards(number, goes_on)
    )


# The fix: compute a loop-invariant array inside the loop body.

_LOOP_FUNCTIONS = ("jax.lax.fori_loop", "jax.lax.scan", "jax.lax.while_loop")


@RULE.fixes("the array computed inside the loop", Proof.FEWER)
def candidates(context: FixContext) -> Iterator[Candidate]:
    """Copy the assignments of names that a loop body captures into the body.

    Yield first those that the body reads, then these with all that they depend on.
    """
    context = context.of_subject()
    function = context.subject
    if function is None:
        return
    assignments = [
        (statement, names)
        for statement in function.body
        if isinstance(statement, ast.Assign) and (names := set(bound_in(*statement.targets)))
    ]
    for body in _bodies(context, function):
        for deep in (False, True):
            wanted = set(read_in(body))
            chosen: list[ast.Assign] = []
            for statement, names in reversed(assignments):
                if names & wanted and statement.lineno < body.lineno:
                    chosen.insert(0, statement)
                    if deep:
                        wanted.update(read_in(statement.value))
            if chosen:
                yield _moved(context, function, body, chosen)


def _moved(
    context: FixContext,
    function: ast.AST,
    body: ast.FunctionDef | ast.Lambda,
    chosen: list[ast.Assign],
) -> Candidate:
    inside = {node for root in (body, *chosen) for node in ast.walk(root)}
    read_elsewhere = {
        node.id
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in inside
    }
    edits: list[Edit] = []
    if isinstance(body, ast.FunctionDef):
        first = body.body[0]
        joint = f"\n{context.indent(first)}"
        edits.append(context.before(first, joint.join(map(context.text, chosen))))
    else:
        statement = next(node for node in context.ancestors(body) if isinstance(node, ast.stmt))
        name, indent = context.fresh("body"), context.indent(statement)
        lines = [f"def {name}({context.text_of_parameters(body)}):"]
        lines += [f"{indent}    {context.text(statement)}" for statement in chosen]
        lines += [f"{indent}    return {context.text(body.body)}", ""]
        edits += [context.before(statement, "\n".join(lines)), context.replace(body, name)]
    edits += [
        context.without(assignment)
        for assignment in chosen
        if read_elsewhere.isdisjoint(bound_in(*assignment.targets)) and context.is_alone(assignment)
    ]
    names = ", ".join(sorted({name for a in chosen for name in bound_in(*a.targets)}))
    return Candidate(f"Compute `{names}` inside the loop", tuple(edits))


def _bodies(context: FixContext, function: ast.AST) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """Yield the bodies of loops: lambdas in the loop's call, or functions defined around it."""
    named = {node.name: node for node in ast.walk(function) if isinstance(node, ast.FunctionDef)}
    for call in ast.walk(function):
        if not isinstance(call, ast.Call) or context.called(call.func) not in _LOOP_FUNCTIONS:
            continue
        for argument in call.args:
            if isinstance(argument, ast.Lambda) and context.statement(argument) is not None:
                yield argument
            body = named.get(argument.id) if isinstance(argument, ast.Name) else None
            if body is not None and context.begins_line(body.body[0]):
                yield body
