"""JX306: a call site has a function compiled for many types or static values.

That is seen in a run of the user's program, in the text (a loop calls a jitted function of the
module with another static value or another shape in every iteration), or in a trace of the loop.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence

from jaxsight.rules.jx306_repeated_recompilation import by_types
from jaxsight.rules.jx306_repeated_recompilation.varying import Varying
from jaxsight.rules.recompilation import FIRST_SHAPES, Miss, named
from jaxsight.rules.rule import Rule
from jaxsight.rules.text.jitted import JitFunction, JittedCalls
from jaxsight.rules.text.loop_findings import InLoops
from jaxsight.rules.text.python_loops import PythonLoop
from jaxsight.rules.text.scopes import NameScope
from jaxsight.rules.text.statements import written
from jaxsight.rules.violation import NodeViolation, Violation
from jaxsight.rules.wording import quoted

RULE = Rule(
    "JX306",
    "repeated-recompilation",
    "Call site triggers repeated recompilation.",
    severity="warning",
    always=False,
)


@RULE.explains_misses
def explain(function: str, misses: Sequence[Miss]) -> Iterator[Violation]:
    """Yield what a call has compiled several times: static arguments, then types of arguments."""
    count = sum(miss.static for miss in misses) + 1
    if count >= FIRST_SHAPES:
        yield Violation(
            f"{named(function)} is compiled for {count} values of a static argument",
            help="make the argument dynamic, or pass fewer values",
        )
    types: dict[str, set[str]] = defaultdict(set)
    for miss in misses:
        for argument, now, before in miss.differs:
            if "weak_type" not in now:
                types[argument] |= {now, before}
    for argument, seen in types.items():
        if len(seen) >= FIRST_SHAPES:
            few = ", ".join(sorted(seen)[:4]) + (", …" if len(seen) > 4 else "")
            yield Violation(
                f"{named(function)} is compiled for {len(seen)} types of an argument",
                help="pad the argument to a few sizes",
                notes=(f"{quoted(argument)} is {few}",),
            )


def find(scope: NameScope, loop: PythonLoop, calls: JittedCalls) -> Iterator[NodeViolation]:
    """Yield calls that compile in every iteration of a loop."""
    loops = [Varying(scope, around) for around in (loop, *loop.around)]
    for _, call, always in loop.calls():
        called = calls.called(scope, call) if always else None
        if called is None:
            continue
        for varying in loops:
            violation = _varies(*called, call, varying, "outer " if varying is not loops[0] else "")
            if violation is not None:
                yield violation
                break


def _varies(
    function: str, jitted: JitFunction, call: ast.Call, varying: Varying, which: str
) -> NodeViolation | None:
    """Return the finding of a call that compiles in every iteration of a loop."""
    compiled = f"{quoted(function, most=20)} compiles in every {which}iteration"
    count = f"{varying.count:,}" if varying.count is not None else "n"
    kept = f"{count} iterations compile {count} programs, which stay in memory"
    at = ast.copy_location(ast.Constant(None), call)
    for name, argument in jitted.static_arguments(call):
        static = "a static argument" if name.isdigit() else f"static {quoted(name, most=14)}"
        if made := varying.new_function(argument):
            return NodeViolation(
                at,
                f"{compiled}: {static} is {made}",
                help="create the function once, before the loop",
                notes=("JAX compares static arguments by `==`: a new function differs", kept),
            )
        if varying.is_number(argument):
            return NodeViolation(
                at,
                f"{compiled}: {static} changes",
                help="pass the same text in all iterations"
                if isinstance(argument, ast.JoinedStr)
                else "trace the argument: take it out of `static_argnums` or `static_argnames`",
                notes=(kept,),
            )
    for argument in jitted.traced_arguments(call):
        if varying.is_shape(argument):
            return NodeViolation(
                at,
                f"{compiled}: the shape of {quoted(written(argument), most=18)} changes",
                help="pad it to one size and mask the rest, or to a few sizes",
                notes=(kept,),
            )
        if not which and (rows := varying.last_rows(argument)) is not None:
            message, help, note = by_types.last_batch(function, written(argument), *rows)
            return NodeViolation(at, message, help=help, notes=(note,))
    return None


RULE.finds_in_module(InLoops(find, in_tests=True))
RULE.finds_in_program(by_types.find)
