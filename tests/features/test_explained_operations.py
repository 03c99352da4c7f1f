"""Each primitive and each operation that the installed JAX has is explained, with a link."""

from __future__ import annotations

import pydoc
import re
import subprocess
import sys
from types import ModuleType

import jax
import jax.numpy as jnp
import pytest
from jaxlib import _hlo
from jaxlib.mlir.dialects import builtin, chlo, func, mhlo, sdy, stablehlo

from jaxsight.features.explained_operations.table import (
    explained,
    explained_at,
    named,
    operations,
    similar,
)
from jaxsight.features.printed_programs.program import HLO, JAXPR, STABLEHLO
from jaxsight.features.printed_programs.read import read
from jaxsight.tracer.programs.jaxpr_text import whole

LONGEST = 130
"""Characters of an explanation: a hover is one line."""
_OPCODES = {
    "kClz": "count-leading-zeros",
    "kCos": "cosine",
    "kExp": "exponential",
    "kExpm1": "exponential-minus-one",
    "kLog1p": "log-plus-one",
    "kOptimizationBarrier": "opt-barrier",
    "kPopulationCount": "popcnt",
    "kSin": "sine",
    "kTopK": "topk",
}
"""The names of opcodes that are printed otherwise than they are called (hlo_opcode.h)."""
ALL = [
    operation for language in (JAXPR, STABLEHLO, HLO) for operation in operations(language).values()
]


@pytest.fixture(scope="module")
def primitives() -> list[str]:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.features.registered_primitives"],
        capture_output=True,
        check=True,
        text=True,
    )
    return ran.stdout.split()


@pytest.mark.slow
def test_each_primitive_that_jax_registers_is_explained(primitives: list[str]) -> None:
    assert len(primitives) > 400
    assert [name for name in primitives if explained(JAXPR, name) is None] == []


def _operations(dialect: ModuleType) -> set[str]:
    """Return the operations of a dialect of MLIR's bindings."""
    generated = [
        dialect,
        *(found for found in vars(dialect).values() if isinstance(found, ModuleType)),
    ]
    return {
        found.OPERATION_NAME
        for module in generated
        for found in vars(module).values()
        if hasattr(found, "OPERATION_NAME")
    }


@pytest.mark.parametrize("dialect", [stablehlo, chlo, sdy, func, mhlo, builtin])
def test_each_operation_that_stablehlo_may_contain_is_explained(dialect: ModuleType) -> None:
    names = _operations(dialect)
    assert names
    assert [name for name in sorted(names) if explained(STABLEHLO, name) is None] == []


def test_each_opcode_of_hlo_is_explained() -> None:
    opcodes = {_printed(opcode.name) for opcode in _hlo.HloOpcode.__members__.values()}
    assert len(opcodes) > 130
    assert opcodes - operations(HLO).keys() == set()


def _printed(opcode: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", opcode.removeprefix("k")).lower()
    return _OPCODES.get(opcode, words)


@pytest.mark.parametrize("opcode", sorted(_OPCODES.values()))
def test_opcodes_are_named_as_xla_prints_them(opcode: str) -> None:
    text = f"HloModule m\nENTRY e {{\n ROOT a = f32[] {opcode}()\n}}"
    with pytest.raises(Exception, match=r"Syntax error") as raised:
        _hlo.hlo_module_from_text(text)
    assert "Unknown opcode" not in str(raised.value)


def test_explanations_are_short_lines_that_link_to_a_reference() -> None:
    for operation in ALL:
        assert len(operation.explanation) <= LONGEST, operation
        assert operation.explanation[-1] not in ".:", operation
        assert re.fullmatch(r"https://[^{}()\s]+", operation.link), operation
        assert operation.markdown.endswith(f" ([reference]({operation.link}))")


def test_links_to_functions_of_jax_lead_to_functions_that_it_has() -> None:
    functions = {
        path.removesuffix(".html"): operation.name
        for operation in operations(JAXPR).values()
        if (path := operation.link.partition("/_autosummary/")[2])
    }
    missing = {function for function in functions if pydoc.locate(function) is None}
    # These functions came with JAX 0.12.
    newer = {f"jax.lax.{name}" for name in ("log2", "one_minus_square", "polynomial")}
    assert missing <= (newer if jax.__version_info__ < (0, 12) else set())


def step(params: tuple[jax.Array, jax.Array], x: jax.Array) -> jax.Array:
    w, b = params

    def body(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
        carry = jnp.tanh(carry @ w + row)
        return carry, jnp.sort(carry)[::-1].cumsum()

    carry, sums = jax.lax.scan(body, b, x)
    return jax.nn.softmax(sums.at[0].add(carry)) + jax.random.normal(jax.random.key(0), (4, 8))


ARGUMENTS = ((jnp.ones((8, 8)), jnp.ones(8)), jnp.ones((4, 8)))


def _text(language: str) -> str:
    if language == JAXPR:
        return whole(0, jax.make_jaxpr(jax.grad(lambda *args: step(*args).sum()))(*ARGUMENTS)).text
    lowered = jax.jit(step).lower(*ARGUMENTS)
    return lowered.as_text() if language == STABLEHLO else lowered.compile().as_text()


@pytest.mark.parametrize("language", [JAXPR, STABLEHLO, HLO])
def test_all_operations_of_a_printed_program_are_explained_where_they_are(language: str) -> None:
    program = read(language, _text(language))
    seen = set()
    waiting = [program.root]
    while waiting:
        block = waiting.pop()
        waiting += block.blocks
        for statement in block.statements:
            found = explained_at(program, statement.operation_start + 1)
            assert found is not None, statement.operation
            operation, start, end = found
            assert program.text[start:end] == statement.operation
            assert explained_at(program, end) == found
            seen.add(operation.name)
    assert len(seen) > 15


_AROUND = {
    JAXPR: "{ lambda ; a:f32[8]. let\n    …\n  in (c,) }",
    STABLEHLO: "…",
    HLO: "HloModule m\n\nENTRY e (b: f32[8]) -> f32[8] {\n…\n}\n",
}
"""A program around a line."""


@pytest.mark.parametrize(
    ("language", "line", "name"),
    [
        (JAXPR, "c:f32[8] = |custom_jvp_call[name=relu] a", "custom_jvp_call"),
        (JAXPR, "{ lambda ; a:Ref{f32[]}. let |addupdate[tree=x] a 1.0:f32[] in () }", "addupdate"),
        (
            JAXPR,
            "{ lambda ; a:Ref{f32[]}. let\n    |addupdate[\n      tree=x\n    ] a\n in () }",
            "addupdate",
        ),
        (JAXPR, "c:f32[8] = psum[axes=(|'max',)] a", None),
        (JAXPR, "c:f32[8] = |my_primitive a", None),
        (STABLEHLO, '%1 = "|stablehlo.all_reduce"(%0) <{', "stablehlo.all_reduce"),
        (STABLEHLO, "%1 = stablehlo.reduce(%0 init: %c) applies |stablehlo.add", "stablehlo.add"),
        (STABLEHLO, "%1 = |call @tanh(%0) : (tensor<f32>) -> tensor<f32>", "func.call"),
        (STABLEHLO, "func.func |public @main() {", None),
        (STABLEHLO, "|func.func public @main() {", "func.func"),
        (STABLEHLO, "|module @jit_f attributes {} {", "builtin.module"),
        (STABLEHLO, "%1 = |mhlo.topk %0 : tensor<2xf32>", "topk"),
        (STABLEHLO, '%1 = stablehlo.custom_call @f(%0) {a = #|stablehlo.dot<b = "add">}', None),
        (HLO, "  a = f32[8]{0} |fusion(b), kind=kLoop, calls=c", "fusion"),
        (HLO, "  a = ((f32[8]), f32[2]) |slice-start(b), slice={[0:2]}", "slice-start"),
        (HLO, '  a = f32[8] custom-call(b), custom_call_target="|add"', None),
    ],
)
def test_the_name_under_the_cursor_is_explained(language: str, line: str, name: str | None) -> None:
    marked = line if line.startswith("{") else _AROUND[language].replace("…", line)
    found = explained_at(read(language, marked.replace("|", "")), marked.index("|"))
    assert (found[0].name if found else None) == name


def test_asynchronous_instructions_say_what_they_start() -> None:
    operation = explained(HLO, "slice-start")
    assert operation is not None
    assert operation.explanation == (
        "starts a computation; other instructions run until `slice-done`; "
        "this one: part of an array with static bounds and strides"
    )


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("dot_general", ["dot_general", "stablehlo.dot_general"]),
        ("jax.lax.exp", ["exp"]),
        ("stablehlo.broadcast_in_dim", ["stablehlo.broadcast_in_dim"]),
        ("fusion", ["fusion"]),
        ("all_reduce", ["stablehlo.all_reduce", "all-reduce"]),
        ("scatter_add", ["scatter-add"]),
        ("call", ["call", "func.call", "call"]),
        ("JX405", []),
    ],
)
def test_operations_are_found_by_names_as_people_write_them(word: str, names: list[str]) -> None:
    assert [operation.name for operation in named(word)] == names


def test_misspelled_operations_have_similar_names() -> None:
    assert "dot_general" in similar("dot_genral")
    assert similar("no such operation") == []
