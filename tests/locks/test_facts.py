"""Facts of a program are placed in the source, whatever its HLO looks like."""

from __future__ import annotations

import pytest

from jaxsight.locks.facts import DtypeFact, FactSources
from jaxsight.wire.kernel_graph import Collective, Constant, Graph, Kernel, Value
from jaxsight.wire.messages.replies import LoweredEquation
from tests.figures.made import made

HLO = """\
HloModule jit_f

%fused_computation (param_0: f32[8,16], param_1: f32[16]) -> f32[8,16] {
  %param_0 = f32[8,16]{1,0} parameter(0)
  %param_1 = f32[16]{0} parameter(1)
  %cos.1 = f32[8,16]{1,0} cosine(PARAM_0), metadata={op_name="jit(f)/eq[0]/cos"}
  %add.1 = f32[8,16]{1,0} broadcast(PARAM_1), metadata={op_name="jit(f)/eq[1]/add"}
  ROOT %mul.1 = f32[8,16]{1,0} multiply(%cos.1, %add.1), metadata={op_name="jit(f)/eq[2]/mul"}
}

ENTRY %main (x.1: f32[8,16]) -> f32[8,16] {
  %x.1 = f32[8,16]{1,0} parameter(0)
  %constant.3 = f32[16]{0} constant({...})
  ROOT %fusion.1 = f32[8,16]{1,0} fusion(X, CONSTANT), kind=kLoop, calls=%fused_computation, \
metadata={op_name="jit(f)/eq[2]/mul"}
}
"""
NEW = {"PARAM_0": "%param_0", "PARAM_1": "%param_1", "X": "%x.1", "CONSTANT": "%constant.3"}
OLD = {
    "PARAM_0": "f32[8,16]{1,0} %param_0",
    "PARAM_1": "f32[16]{0} %param_1",
    "X": "f32[8,16]{1,0} %x.1",
    "CONSTANT": "f32[16]{0} %constant.3",
}
LINES = {"0": 5, "1": 6, "2": 7}


def sources(graph: Graph, hlo: str = "", *equations: LoweredEquation) -> FactSources:
    figures = made(graph, "cpu", hlo, equations)
    return FactSources(figures, ("f32[8,16]",), "f32[8,16]", LINES.get)


@pytest.mark.parametrize("names", [NEW, OLD], ids=["names", "types and names"])
def test_a_constant_is_placed_where_it_is_read_inside_a_fusion(names: dict[str, str]) -> None:
    hlo = HLO
    for placeholder, operand in names.items():
        hlo = hlo.replace(f"({placeholder}", f"({operand}").replace(
            f" {placeholder})", f" {operand})"
        )
    constant = Constant("constant.3", Value("f32[16]", "0", 64))
    (fact,) = sources(Graph("jit_f", (), constants=(constant,)), hlo).facts().constants
    assert (fact.bytes, fact.line) == (64, 6)


@pytest.mark.parametrize(("primitive", "line"), [("sharding_constraint", 7), ("mul", 6)])
def test_an_inserted_collective_is_placed_at_the_constraint_after_it(
    primitive: str, line: int
) -> None:
    gather = Collective("all-gather", 64, axes=("data",), inserted=True)
    kernel = Kernel("all-gather.1", "collective", "", "collective", ("1",), collective=gather)
    equations = [
        LoweredEquation("1", "add", outputs=("f32[8]",)),
        LoweredEquation("2", primitive, outputs=("f32[8]",)),
    ]
    (fact,) = sources(Graph("jit_f", (kernel,)), "", *equations).facts().collectives
    assert (fact.kind, fact.axes, fact.line) == ("all-gather", ("data",), line)


def test_dtypes_have_their_largest_arrays_and_first_places() -> None:
    equations = [
        LoweredEquation("0", "convert", outputs=("f64[]", "bool[8]")),
        LoweredEquation("1", "mul", outputs=("f64[8@data,4]", "key<fry>[2]")),
        LoweredEquation("2", "cvt", outputs=("f8_e4m3fn[16]", "i32[8]")),
    ]
    found = sources(Graph("jit_f", ()), "", *equations).facts().dtypes
    assert found == (DtypeFact("f32", 512), DtypeFact("f64", 256), DtypeFact("f8_e4m3fn", 16))
    assert [(each.first, each.line) for each in found] == [(0, 0), (5, 6), (7, 7)]
    assert [each.bits for each in found] == [32, 64, 8]
