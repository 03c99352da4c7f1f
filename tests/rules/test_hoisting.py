"""Hoisting an expression out of a function, where its names may be bound in many ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from jaxsight.rules.finding import finding_of
from jaxsight.rules.fixing.context import FixContext
from jaxsight.rules.jx303_recreated_jit.rule import candidates
from jaxsight.source.module import Module
from jaxsight.source.text import Position, Range
from jaxsight.wire.observations import ExprValue, Observation

BINDING = (
    "from jax.numpy import sin as {0}",
    "import math as {0}",
    "{0} = jnp.sin",
    "({0}, *rest) = table",
    "for {0} in table: pass",
    "with table as {0}: pass",
    "try: pass\n    except ValueError as {0}: pass",
    "match table:\n        case [{0}, *_]: pass",
    "match table:\n        case {{'k': 1, **{0}}}: pass",
    "global {0}\n    {0} = 1",
    "if ({0} := table): pass",
    "def {0}(v): return v",
    "class {0}: pass",
    "del {0}",
)


@dataclass
class View:
    module: Module
    subject_range: Range = field(default_factory=lambda: Range(Position(0, 0), Position(0, 0)))
    example_places: Sequence[tuple[str, Range]] = ()
    observed: Mapping[Range, Observation] = field(default_factory=dict)

    def seen(self, observation: Observation) -> tuple[ExprValue, ...]:
        return ()


def hoisted(text: str) -> list[str]:
    """Return the edits that hoist `jax.jit(…)` out of the last function of a text."""
    module = Module.parse(text)
    line = text.count("\n", 0, text.index("jax.jit"))
    column = text.split("\n")[line].index("jax.jit")
    length = len(text.split("\n")[line].removesuffix("(x)")) - column
    place = Range(Position(line, column), Position(line, column + length))
    context = FixContext.of(View(module), finding_of("JX303", place, "message"))
    assert context is not None
    return [edit.text for candidate in candidates(context) for edit in candidate.edits]


@given(st.sampled_from(BINDING), st.sampled_from(("lambda v: {0}(v)", "{0}", "partial(g, {0})")))
def test_what_reads_a_name_of_the_function_stays_in_it(binding: str, use: str) -> None:
    head = f"import jax\n\n\ndef f(x, table):\n    {binding.format('name')}\n"
    assert hoisted(f"{head}    return jax.jit({use.format('name')})(x)\n") == []
    assert hoisted(f"{head}    return jax.jit({use.format('other')})(x)\n") != []


def test_names_that_the_expression_binds_itself_do_not_matter() -> None:
    text = "import jax\n\n\ndef f(x):\n    v = x\n    return jax.jit(lambda v: [w for w in v])(x)\n"
    assert len(hoisted(text)) == 2


def test_a_call_of_the_function_itself_stays_in_it() -> None:
    assert hoisted("import jax\n\n\ndef f(x):\n    return jax.jit(f)(x)\n") == []
