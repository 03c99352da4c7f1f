"""JX301: a result is weakly typed.

Fed back as an argument, it has another type than before: the function is traced and compiled again.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from jaxsight.rules.fixing.context import Candidate, FixContext
from jaxsight.rules.program.flow import Flow
from jaxsight.rules.program.view import ProgramView
from jaxsight.rules.recompilation import Miss, named
from jaxsight.rules.rule import Rule, Violation
from jaxsight.rules.wording import cut, quoted
from jaxsight.wire.program import INPUT

RULE = Rule(
    __name__,
    "Weakly typed result triggers a recompile when it is fed back.",
    severity="information",
    of_whole_program=True,
)


@RULE.explains_misses
def explain(function: str, misses: Sequence[Miss]) -> Iterator[Violation]:
    """Report the first argument whose weak type changed."""
    differ = (differ for miss in misses for differ in miss.differs)
    weak = (each for each in differ if "weak_type" in each[1] and "weak_type" in each[2])
    for argument, now, before in islice(weak, 1):
        yield Violation(
            f"{named(function)} is recompiled because the weak type of an argument changed",
            help="specify the dtype of the argument once, where it is created",
            notes=(f"{quoted(argument)} is {_kind(now)} here, and was {_kind(before)} before",),
        )


def _kind(text: str) -> str:
    """Return what a type in JAX's message stands for."""
    return "a Python number" if "weak_type=True" in text else "an array"


@RULE.finds_in_program
def find(view: ProgramView) -> Iterator[Violation]:
    """Yield the weakly typed results that may be fed back.

    A result may be fed back if an argument has its dtype and shape and no strongly typed result is
    left for that argument, or if the function has no arguments but keys.

    A result that is weak because an argument is weak is not reported: it has the same type as
    before. Nor is one that a Python number in the call may have made weak: the function may have
    computed with that number before it became a literal of the program (numpyro 0.22,
    `distributions/util.py`, `_binomial_dispatch` with `n` an integer). Nor are integers that a
    function of keys alone returns: a counter stays weak when one is added to it (measured on JAX
    0.12.0.1: `count + 1` is compiled once).
    """
    flow = view.flow
    inputs = [v for number in flow.inputs if (v := flow.values[number]).origin == INPUT]
    free = Counter((value.dtype, value.shape) for value in inputs if not value.weak)
    free -= Counter((v.dtype, v.shape) for v in map(flow.value, flow.outputs) if not v.weak)
    makes = bool(inputs) and all(value.dtype.startswith("key") for value in inputs)
    for number in dict.fromkeys(flow.outputs):
        value = flow.values[number]
        if _may_be_of(view.numbers, value.dtype):
            continue
        again = free[value.dtype, value.shape] > 0
        begins = makes and not value.dtype.startswith(("int", "uint"))
        if not value.weak or not value.dtype or not (again or begins) or _was_weak(flow, number):
            continue
        maker = flow.producer(number)
        yield Violation(
            f"weakly typed result ({cut(value.text, 40)}) triggers a recompile if fed back",
            maker.path if maker is not None else "",
            help=f"specify a dtype: `jnp.asarray(…, dtype=jnp.{value.dtype})`, "
            "`jnp.full(…, dtype=…)`",
            notes=(
                "its type comes from Python numbers alone",
                "an argument has the same shape and dtype, without the weak type"
                if again
                else "all arguments are PRNG keys, so this may initialize what another function "
                "updates",
            ),
            data=value.dtype,
        )


def _may_be_of(numbers: frozenset[str], dtype: str) -> bool:
    """Return whether Python numbers of these types can make a weakly typed value of this dtype."""
    if dtype.startswith("int"):
        return "int" in numbers
    return bool(numbers & ({"int", "float"} if dtype.startswith("float") else numbers))


def _was_weak(flow: Flow, number: int) -> bool:
    """Whether a value is computed from a weakly typed argument."""
    sources = flow.sources(number, lambda step: bool(step.operands), most=1000)  # more take long
    return sources is not None and any(
        flow.values[source].weak and source in flow.inputs for source in sources
    )


# The fix: specify the dtype of a weakly typed result.

_MAKERS = ("full", "asarray", "array", "arange")


@RULE.fixes("an explicit dtype")
def candidates(context: FixContext, weak: str) -> Iterator[Candidate]:
    """Yield `dtype=` for a call that takes it, and `.astype` of the expression."""
    node = context.node
    if not context.jnp or not isinstance(node, ast.expr):
        return
    dtype = f"{context.jnp}.{weak}"
    title = f"Specify the dtype `{weak}`"
    if isinstance(node, ast.Call) and node.args and not node.keywords:
        called = context.called(node.func)
        if called.rpartition(".")[2] in _MAKERS and called.startswith("jax.numpy."):
            yield Candidate(title, (context.with_keyword(node, f"dtype={dtype}"),))
    # The whole expression comes second: another weak number may follow in it.
    expression = node
    for part in context.ancestors(node):
        if isinstance(part, ast.Return | ast.Assign):
            expression = part.value if part.value is not None else node
            break
        if not isinstance(part, ast.BinOp | ast.UnaryOp):
            break
    for part in dict.fromkeys((node, expression)):
        yield context.replaced(part, f"{context.operand(part)}.astype({dtype})", title, same=True)
