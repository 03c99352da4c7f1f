"""JX301: a result has a weak type; given back as an argument it is another type, and the function is traced and compiled again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jaxsight.rules.noticed import Noticed
from jaxsight.rules.reading import Flow, Reading
from jaxsight.rules.rule import Rule
from jaxsight.tracer.program import INPUT

RULE = Rule(
    "JX301",
    "weak-typed-output",
    "A result has a weak type: fed back, it compiles again.",
    severity="information",
)


@RULE.finds_in_program
def find(reading: Reading) -> Iterator[Noticed]:
    """Each weakly typed result that may be given back: for an argument of its type no other result is left, or there are no arguments but keys.

    What is weak because an argument is was weak before, and is no other type when it is given back. A Python number
    that the function was called with may have been computed with before it became part of the program, as a literal
    (numpyro 0.22, `distributions/util.py`, `_binomial_dispatch` with `n` an integer): results that it may have made
    weak are not reported. Nor are counters that a function of keys alone begins: a weakly typed
    integer plus one is one too (measured on JAX 0.12.0.1: `count + 1` is compiled once).
    """
    flow = reading.flow
    given = [v for number in flow.inputs if (v := flow.values[number]).origin == INPUT]
    free = Counter((value.dtype, value.shape) for value in given if not value.weak)
    free -= Counter((v.dtype, v.shape) for v in map(flow.value, flow.outputs) if not v.weak)
    makes = bool(given) and all(value.dtype.startswith("key") for value in given)
    for number in dict.fromkeys(flow.outputs):
        value = flow.values[number]
        if _may_be_of(reading.numbers, value.dtype):
            continue
        again = free[value.dtype, value.shape] > 0
        begins = makes and not value.dtype.startswith(("int", "uint"))
        if not value.weak or not value.dtype or not (again or begins) or _was_weak(flow, number):
            continue
        maker = flow.made_by(number)
        resembles = " as the argument of the same type that it resembles" * again
        yield Noticed(
            f"This result is a weakly typed {value.text}: its type comes from Python numbers alone. Fed back{resembles}, it has the "
            "function traced and compiled a second time. Say the dtype "
            f"(`jnp.asarray(…, dtype=jnp.{value.dtype})`, `jnp.full(…, dtype=…)`).",
            maker.path if maker is not None else "",
        )


def _may_be_of(numbers: frozenset[str], dtype: str) -> bool:
    """Return whether Python numbers of these types can make a weakly typed value of this dtype."""
    if dtype.startswith("int"):
        return "int" in numbers
    return bool(numbers & ({"int", "float"} if dtype.startswith("float") else numbers))


def _was_weak(flow: Flow, number: int) -> bool:
    """Whether a value comes from a weakly typed argument."""
    sources = flow.sources(number, lambda step: bool(step.operands), most=1000)
    return sources is not None and any(
        flow.values[each].weak and each in flow.inputs for each in sources
    )
