"""Printed programs as structure, compared with JAX's, MLIR's and the kernel reader's own."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.extend.core import Literal

from jaxsight.features.printed_programs import editor_views
from jaxsight.features.printed_programs.program import (
    FUNCTION,
    LANGUAGES,
    PrintedBlock,
    PrintedProgram,
    PrintedStatement,
)
from jaxsight.features.printed_programs.read import read
from jaxsight.hlo.text import parse
from jaxsight.tracer.programs.jaxpr_text import whole
from jaxsight_source.compat.inner import inner_jaxprs
from jaxsight_source.compat.jaxpr_types import Jaxpr
from jaxsight_source.compat.staging import open_jaxpr
from tests.compiler import material
from tests.jaxsight_source.randomly import program as random_program

NUMBERS = st.integers(0, 100_000)


def statements(block: PrintedBlock) -> Iterator[PrintedStatement]:
    """Yield all statements in a block, in the order of the text."""
    found = list(block.statements)
    waiting = list(block.blocks)
    while waiting:
        inside = waiting.pop()
        found += inside.statements
        waiting += inside.blocks
    yield from sorted(found, key=lambda statement: statement.start)


def check_names(program: PrintedProgram) -> None:
    """Check that each name is defined before it is used, and found from its definition."""
    for key, places in program.places.items():
        assert places == sorted(places)
        for offset in places:
            assert program.key_at(offset) is not None
            defined = program.definition(key, offset)
            if key.startswith(FUNCTION):
                continue
            assert defined is not None, (key, program.position(offset))
            block, start = defined
            assert block.start <= start <= block.end
            assert block.start <= offset <= block.end
            # An argument is named in the first line of its computation too.
            in_head = program.line(offset) == program.line(block.start)
            assert start <= offset or (program.language == "hlo" and in_head)
            if start == offset:
                assert editor_views.definition(program, offset) is None
                assert offset in program.uses(key, block)


@settings(max_examples=25, deadline=None)
@given(NUMBERS)
def test_a_jaxpr_has_the_equations_and_variables_that_jax_says(number: int) -> None:
    drawn = random_program(number)
    jaxpr = jax.make_jaxpr(drawn.function)(*drawn.args)
    program = read("jaxpr", whole(0, jaxpr).text)
    check_names(program)
    check_jaxpr(open_jaxpr(jaxpr), program.root.blocks[0], program)


def check_jaxpr(jaxpr: Jaxpr, block: PrintedBlock, program: PrintedProgram) -> None:
    assert [equation.primitive.name for equation in jaxpr.eqns] == [
        statement.operation for statement in block.statements
    ]
    for equation, statement in zip(jaxpr.eqns, block.statements, strict=True):
        used = [
            name
            for name in block.defined
            for at in program.uses(name, block)
            if block.defined[name] < statement.operation_start < at < statement.end
        ]
        assert len(used) == sum(not isinstance(var, Literal) for var in equation.invars)
        inside = [inner for inner in block.blocks if statement.start < inner.start < statement.end]
        # Parameters are printed in the order of their names.
        parts = [p.jaxpr for p in sorted(inner_jaxprs(equation), key=lambda part: part.name)]
        repeated = program.text.count(" as in ", statement.start, statement.end)
        assert len(parts) - repeated <= len(inside) <= len(parts)
        if len(inside) == len(parts):
            for part, inner in zip(parts, inside, strict=True):
                check_jaxpr(part, inner, program)


@settings(max_examples=15, deadline=None)
@given(NUMBERS)
def test_stablehlo_has_the_operations_that_mlir_says(number: int) -> None:
    drawn = random_program(number)
    lowered = jax.jit(drawn.function).lower(*drawn.args)
    program = read("stablehlo", lowered.as_text())
    check_names(program)
    expected: list[str] = []

    def visit(operation: object) -> None:
        name = operation.name  # type: ignore[attr-defined]
        if name != "func.func":
            expected.append(name.removeprefix("builtin.").removeprefix("func."))
        for region in operation.regions:  # type: ignore[attr-defined]
            for block in region.blocks:
                for inside in block.operations:
                    visit(inside.operation)

    visit(lowered.compiler_ir("stablehlo").operation)
    # A reduction that applies one operation has no printed region.
    listed = [found.operation.removeprefix("func.") for found in statements(program.root)]
    applied = lowered.as_text().count(" applies ")
    assert len(expected) - len(listed) == 2 * applied
    if not applied:
        assert listed == expected


@pytest.mark.parametrize(
    ("target", "function"),
    [name for name in material.names() if name[1] in ("f_for", "f_sum_jax", "transformer_step")],
)
def test_hlo_has_the_instructions_and_operands_that_its_other_reader_says(
    target: str, function: str
) -> None:
    text = material.text(target, function)
    program = read("hlo", text)
    check_names(program)
    module = parse(text)
    for key, block in program.functions.items():
        computation = module.computation(block.name.lstrip("%"))
        assert computation is not None, key
        listed = [found for found in computation.instructions if "#" not in found.name]
        assert [found.opcode for found in listed] == [
            statement.operation for statement in block.statements
        ]
        assert {found.name for found in listed} == set(block.defined)
        for found in listed:
            for names in found.called.values():
                for name in names:
                    places = program.places[f"{FUNCTION}{name}"]
                    assert any(block.start < at < block.end for at in places), name


def test_hlo_that_is_cut_in_the_first_line_of_a_computation_keeps_the_one_before() -> None:
    first = "%fused (p: f32[]) -> f32[] {\n  %p = f32[] parameter(0)\n}\n\n"
    program = read("hlo", f"HloModule f\n\n{first}ENTRY %main (x: f32[]) -> f32[] {{")
    assert [(block.name, len(block.statements)) for block in program.root.blocks] == [
        ("%fused", 1),
        ("%main", 0),
    ]


PIECES = st.sampled_from(
    [
        "{ lambda ; a:f32[3] b:i32[]. let\n", "    c:f32[3] = ", "add a b", "\n  in (c,) }", "jit[\n",
        "name=f jaxpr={ lambda ; a:f32[3]. let ", "; ", "] a", "(", ")", "[", "]", "{", "}", "'", '"',
        "func.func public @main(%arg0: tensor<3xf32>) {\n", "  %0 = stablehlo.add %arg0, %0 : ", "}\n",
        "^bb0(%x: tensor<f32>):\n", "  cond {\n", "%1:2 = stablehlo.while(%i = %0) : ", "} do {\n",
        "ENTRY %m (p: f32[]) -> f32[] {\n", "  ROOT %x.1 = f32[]{0} fusion(%p, %x.1), calls=%m\n",
        "// text", "# text\n", "\n", "\r\n", "\r", " ", "😋", "%", "@", "=", "…", "\u2028",
        "{ lambda … as in 2/body }", "kernel 1: a\n",
    ]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), st.data())
def test_any_text_is_read_and_every_answer_lies_in_it(text: str, data: st.DataObject) -> None:
    for language in LANGUAGES:
        program = read(language, text)
        for key, places in program.places.items():
            for offset in places:
                defined = program.definition(key, offset)
                assert defined is None or 0 <= defined[1] <= len(text)
        offset = data.draw(st.integers(0, len(text)))
        assert 0 <= program.offset(program.position(offset)) <= len(text)
        spans, _ = editor_views.occurrences(program, offset)
        assert all(0 <= start < end <= len(text) for start, end in spans)
        statement = program.statement_at(offset)
        assert statement is None or statement.start <= offset <= statement.end
