"""Kernel graphs of real optimized HLO: counts, kinds, reasons, what passes between kernels."""

from __future__ import annotations

import gc
import re
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsight.compiler.hlo import read
from jaxsight.hlo.metadata import HloFrames, fields_of
from jaxsight.hlo.text import attribute, parse
from jaxsight.wire.kernel_graph import KERNEL, OUTPUT, PARAMETER, REASONS
from tests.compiler import material

# Kernels of the functions of the notebook: the launches of XLA's own thunk sequences on GPUs,
# counted by hand on the others.
COUNTS = {
    "cpu": {
        "f_well_fused": 1, "f_sum_jax": 2, "f_sum_explicit": 1, "f_barrier": 2, "f_fft3d": 4, "f_for": 3,
        "f_for_u2": 3, "f_for_u4": 1, "f_numpy": 1, "f_recalc": 2, "f_stored": 2,
    },
    "cpu@0.10.2": {"f_barrier": 1, "f_sum_jax": 2, "f_sum_explicit": 1},
    "gpu_h100_sxm": {
        "f_well_fused": 1, "f_sum_jax": 2, "f_sum_explicit": 1, "f_barrier": 2, "f_fft3d": 5, "f_for": 5,
        "f_for_u2": 5, "f_for_u4": 1, "f_numpy": 1, "f_recalc": 2, "f_stored": 2,
    },
    "gpu_h100_min@0.10.2": {"f_fft3d": 7, "f_sum_jax": 2},
    "gpu_h100_min@0.4.35": {"f_sum_jax": 2, "f_sum_explicit": 1, "f_for": 5},
    "tpu_v5e": {
        "f_well_fused": 3, "f_sum_jax": 3, "f_sum_explicit": 2, "f_barrier": 2, "f_fft3d": 25, "f_for": 4,
        "f_for_u2": 4, "f_for_u4": 1, "f_numpy": 1, "f_recalc": 2, "f_stored": 2,
    },
    "gpu_big": {"transformer_step": 318},
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "function", "kernels"),
    [(target, name, count) for target, each in COUNTS.items() for name, count in each.items()],
)
def test_kernels_are_counted(target: str, function: str, kernels: int) -> None:
    assert read(material.text(target, function)).kernel_count == kernels


@pytest.mark.parametrize(("target", "function"), material.names())
def test_every_version_of_the_text_is_read_whole(target: str, function: str) -> None:
    text = material.text(target, function)
    graph = read(text)
    assert graph.notes == ()
    assert graph.kernel_count > 0
    assert len(graph.outputs) > 0
    lines = text.split("\n")
    for kernel in graph.kernels:
        assert re.search(rf"{re.escape(kernel.name)} = ", lines[kernel.instruction])
        assert kernel.ends_because in REASONS
        assert kernel.launches >= kernel.at_least >= 0


@pytest.mark.parametrize("target", ["gpu_big", "cpu_big"])
def test_a_flat_module_has_as_many_kernels_as_lines_of_its_entry_that_launch(target: str) -> None:
    """An independent count: the transformer step has no loops."""
    text = material.text(target, "transformer_step")
    entry = text[text.index("\nENTRY ") :]
    opcodes = re.findall(r"^ +(?:ROOT )?\S+ = (?:\(.*?\)|\S+) ([a-z-]+)\(", entry, re.MULTILINE)
    free = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast"}
    assert read(text).kernel_count == sum(opcode not in free for opcode in opcodes)


def test_a_tpu_moves_data_by_transfers_that_are_no_kernels() -> None:
    text = material.text("tpu_big", "transformer_step")
    graph = read(text)
    starts = len(re.findall(r" (?:copy|slice)-start\(", text))
    assert graph.transfers == starts
    assert not any(kernel.name.endswith("-start") for kernel in graph.kernels)


def test_loops_multiply_launches() -> None:
    graph = read(material.text("gpu_h100_sxm", "f_for"), platform="cuda")
    (loop,) = graph.loops
    assert loop.trips == 4
    inside = [kernel for kernel in graph.kernels if kernel.loops == (0,)]
    assert [kernel.launches for kernel in inside] == [4, 4, 0], "the condition never runs"
    assert graph.launch_count == graph.launches_at_least == 2 + 2 * 4
    assert graph.launches_known
    assert not loop.waits
    assert {kernel.ends_because for kernel in graph.kernels} == {"while"}


def test_a_reduction_ends_a_kernel_and_leaves_a_temporary() -> None:
    graph = read(material.text("gpu_h100_sxm", "f_sum_jax"))
    first, second = graph.kernels
    assert (first.title, first.ends_because) == ("input fusion (reduction)", "reduction")
    assert second.ends_because == "output"
    (temporary,) = graph.temporaries
    assert (temporary.value.text, temporary.value.bytes) == ("f32[131072]", 524288)
    assert (temporary.producer, temporary.consumers) == (0, (1,))
    ends = {(edge.source.what, edge.target.what) for edge in graph.edges}
    assert ends == {(PARAMETER, KERNEL), (KERNEL, KERNEL), (KERNEL, OUTPUT)}


def test_temporaries_add_up_to_what_xla_allocates_where_nothing_is_reused() -> None:
    graph = read(material.text("gpu_h100_sxm", "f_sum_jax"))
    told = material.figures("gpu_h100_sxm", "f_sum_jax")["memory"]["temp_size_in_bytes"]
    assert sum(temporary.value.bytes for temporary in graph.temporaries) == told


def test_ffts_and_the_transposes_around_them() -> None:
    graph = read(material.text("gpu_h100_sxm", "f_fft3d"))
    assert [kernel.ends_because for kernel in graph.kernels] == [
        "layout change",
        "fft",
        "fft",
        "fft",
        "layout change",
    ]
    assert [kernel.kind for kernel in graph.kernels].count("library") == 2


def test_what_is_computed_twice_is_told() -> None:
    graph = read(material.text("gpu_h100_sxm", "f_recalc").replace("jit(f_recalc)", "jit(f)/eq[3]"))
    assert graph.kernels[0].recomputes == ()
    assert graph.kernels[1].recomputes == ("3",)


def test_matmuls_of_a_transformer_step_have_their_operations() -> None:
    graph = read(material.text("gpu_big", "transformer_step"))
    matmuls = [kernel for kernel in graph.kernels if kernel.ends_because == "matmul"]
    assert len(matmuls) > 100
    first = next(k for k in matmuls if k.outputs[0].text == "f32[4096,1536]")
    assert first.flops >= 2 * 4096 * 1536 * 512


def test_a_barrier_of_the_program_is_a_reason_where_it_is_told() -> None:
    text = material.text("gpu_h100_sxm", "f_barrier")
    located = text.replace("jit(f_barrier)/add", "jit(f)/eq[1]/add")
    assert read(located, barriers=["1"]).kernels[0].ends_because == "optimization_barrier"
    assert read(located).kernels[0].ends_because == "XLA's choice"


FED = """HloModule m, is_scheduled=true

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %next = s32[] add(%i, %i), metadata={op_name="jit(f)/eq[2]/while/body/eq[body.1]/add"}
  %kept = f32[8]{0} copy(%x)
  %y = f32[8]{0} sine(%kept), metadata={op_name="jit(f)/eq[2]/while/body/eq[body.0]/sin"}
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %y)
}

%condition (p: (s32[], f32[8])) -> pred[] {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  ROOT %less = pred[] compare(%i, %i), direction=LT
}

%fused (a: f32[8], b: f32[2,4]) -> f32[8] {
  %a = f32[8]{0} parameter(0), metadata={op_name="jit(f)/eq[7]/add"}
  %b = f32[2,4]{1,0} parameter(1)
  %c = f32[8]{0} bitcast(%b), metadata={op_name="jit(f)/eq[3]/dot_general"}
  ROOT %d = f32[8]{0} add(%a, %c), metadata={op_name="jit(f)/eq[4]/add"}
}

%one (q: f32[8]) -> f32[8] {
  %q = f32[8]{0} parameter(0)
  ROOT %q1 = f32[8]{0} copy(%q)
}

ENTRY %main (x: f32[8], m: f32[2,4], k: f32[2,4]) -> (f32[8], f32[8], f32[8]) {
  %x = f32[8]{0} parameter(0)
  %m = f32[2,4]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %start = s32[] copy(%zero)
  %first = f32[8]{0} copy(%x)
  %t0 = (s32[], f32[8]{0}) tuple(%start, %first)
  %w = (s32[], f32[8]{0}) while(%t0), condition=%condition, body=%body, metadata={op_name="jit(f)/eq[2]/while"}
  %r = f32[8]{0} get-tuple-element(%w), index=1
  %turned = f32[2,4]{0,1} copy(%m)
  %padded = f32[2,4]{1,0} copy(%turned)
  %f = f32[8]{0} fusion(%r, %padded), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/eq[4]/add"}
  %again = f32[8]{0} copy(%f)
  %p = pred[] compare(%f, %f), direction=EQ, metadata={op_name="jit(f)/eq[5]/eq"}
  %chosen = f32[8]{0} conditional(%p, %f, %f), true_computation=%one, false_computation=%one, metadata={op_name="jit(f)/eq[6]/cond"}
  %alone = f32[8]{0} copy(%x)
  ROOT %out = (f32[8]{0}, f32[8]{0}, f32[8]{0}) tuple(%again, %chosen, %alone)
}
"""


def test_kernels_that_compute_no_equation_name_what_they_feed() -> None:
    kernels = {kernel.name: kernel for kernel in read(FED).kernels}
    assert {name: kernel.feeds for name, kernel in kernels.items() if kernel.feeds} == {
        "start": ("2",),  # the loop that carries it
        "first": ("2",),
        "kept": ("2/body/0",),  # what reads it
        "less": ("2",),  # the loop that it is the condition of
        "turned": ("4",),
        "padded": ("4",),
        "q1": ("6",),  # the conditional whose arm it is
        "again": ("4",),  # what it copies
    }
    assert kernels["alone"].ends_because == "output", "an argument that is a result, of no line"


def test_a_kernel_names_only_what_it_computes() -> None:
    kernels = {kernel.name: kernel for kernel in read(FED).kernels}
    assert kernels["f"].equations == ("4",), "neither the dot before its bitcast nor its argument"


def test_what_chooses_an_arm_ends_for_the_conditional() -> None:
    kernels = {kernel.name: kernel for kernel in read(FED).kernels}
    assert kernels["p"].ends_because == "conditional"
    assert kernels["f"].ends_because == "shared result"


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("__gpu$TopK", "top-k"),
        ("cu_lu_pivots_to_permutation", "permutation of LU pivots"),
        ("cusolver_getrf_ffi", "cuSOLVER LU"),
        ("lapack_ssyevd_ffi", "LAPACK symmetric eigenvalues"),
        ("lapack_sgesdd_ffi", "LAPACK SVD"),
        ("__gpu$my.thing", "custom call my.thing"),
        ("my_op", "custom call my_op"),
    ],
)
def test_calls_of_libraries_are_named_in_words(target: str, what: str) -> None:
    text = f"""HloModule m
ENTRY main {{
  p = f32[8]{{0}} parameter(0)
  ROOT c = f32[8]{{0}} custom-call(p), custom_call_target="{target}"
}}
"""
    assert read(text).kernels[0].title == what


LOOPS = """HloModule m, is_scheduled=true

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[8]{0} get-tuple-element(%p), index=1
  %next = s32[] add(%i, %i)
  %y = f32[8]{0} multiply(%x, %x), metadata={op_name="jit(f)/eq[2]/while/body/eq[body.0]/mul"}
  ROOT %t = (s32[], f32[8]{0}) tuple(%next, %y)
}

%condition (p: (s32[], f32[8])) -> pred[] {
  %p = (s32[], f32[8]{0}) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  ROOT %less = pred[] compare(%i, %i), direction=LT
}

%yes (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %sine = f32[8]{0} sine(%a)
}

%no (b: f32[8]) -> f32[8] {
  ROOT %b = f32[8]{0} parameter(0)
}

ENTRY %main (x: f32[8], c: pred[]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %c = pred[] parameter(1)
  %zero = s32[] constant(0)
  %t0 = (s32[], f32[8]{0}) tuple(%zero, %x)
  %w = (s32[], f32[8]{0}) while(%t0), condition=%condition, body=%body, metadata={op_name="jit(f)/eq[2]/while"}
  %r = f32[8]{0} get-tuple-element(%w), index=1
  ROOT %chosen = f32[8]{0} conditional(%c, %r, %r), true_computation=%yes, false_computation=%no, metadata={op_name="jit(f)/eq[3]/cond"}
}
"""


def test_values_are_followed_through_loops_and_branches() -> None:
    graph = read(LOOPS)
    names = [kernel.name for kernel in graph.kernels]
    assert names == ["next", "y", "less", "sine"]
    assert not graph.launches_known
    assert [loop.trips for loop in graph.loops] == [None]
    assert [(branch.arm, branch.arms, branch.equation) for branch in graph.branches] == [
        (0, 2, "3"),
        (1, 2, "3"),
    ]
    assert graph.kernels[1].equations == ("2/body/0",)
    sources = {
        (edge.source.what, edge.source.index)
        for edge in graph.edges
        if edge.target.what == KERNEL and edge.target.index == 1
    }
    assert sources == {(PARAMETER, 0), (KERNEL, 1)}, "what comes in, and what it gave before"
    outputs = {
        (edge.source.what, edge.source.index) for edge in graph.edges if edge.target.what == OUTPUT
    }
    assert outputs == {(KERNEL, 3), (KERNEL, 1)}


def test_trips_that_the_program_knows_count_where_the_hlo_does_not_tell() -> None:
    graph = read(LOOPS, platform="cuda", trips={"2": 5})
    (loop,) = graph.loops
    assert (loop.trips, loop.waits) == (5, True)
    assert [kernel.launches for kernel in graph.kernels] == [5, 5, 6, 1], "the condition ends it"
    assert (graph.launches_at_least, graph.launch_count) == (16, 17)


def test_launches_are_a_range_where_an_arm_or_a_loop_decides() -> None:
    graph = read(LOOPS, platform="cuda")
    assert (graph.launches_at_least, graph.launch_count) == (1, 4)
    assert [loop.waits for loop in graph.loops] == [True]
    assert [loop.waits for loop in read(LOOPS).loops] == [False], "a CPU has nothing to wait for"


NESTED = """HloModule m, is_scheduled=true

%one (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %sine = f32[8]{0} sine(%a)
}

%three (b: f32[8]) -> f32[8] {
  %b = f32[8]{0} parameter(0)
  %b1 = f32[8]{0} sine(%b)
  %b2 = f32[8]{0} cosine(%b1)
  ROOT %b3 = f32[8]{0} tan(%b2)
}

%either (c: f32[8]) -> f32[8] {
  %c = f32[8]{0} parameter(0)
  %p = pred[] constant(true)
  ROOT %inner = f32[8]{0} conditional(%p, %c, %c), true_computation=%one, false_computation=%three
}

ENTRY %main (x: f32[8], i: s32[]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %i = s32[] parameter(1)
  ROOT %outer = f32[8]{0} conditional(%i, %x, %x, %x), branch_computations={%one, %either, %three}
}
"""


def test_a_conditional_counts_one_arm() -> None:
    graph = read(NESTED)
    assert graph.kernel_count == 1 + (1 + 3) + 3
    assert (graph.launches_at_least, graph.launch_count) == (1, 3)
    assert graph.launches_known


ELEMENTS = """HloModule m, is_scheduled=true
%body (p: (s32[], (f32[8], f32[4]))) -> (s32[], (f32[8], f32[4])) {
  %p = (s32[], (f32[8]{0}, f32[4]{0})) parameter(0)
  %next = s32[] negate(%p#0)
  %y = f32[4]{0} sine(%p#1#1), metadata={op_name="jit(f)/eq[2]/while/body/eq[body.0]/sin"}
  %t = (f32[8]{0}, f32[4]{0}) tuple(%p#1#0, %y)
  ROOT %r = (s32[], (f32[8]{0}, f32[4]{0})) tuple(%next, %t)
}
%condition (q: (s32[], (f32[8], f32[4]))) -> pred[] {
  %q = (s32[], (f32[8]{0}, f32[4]{0})) parameter(0)
  %c = s32[] constant(7)
  ROOT %less = pred[] compare(%q#0, %c), direction=LT
}
ENTRY %main (x: f32[8], z: f32[4]) -> f32[4] {
  %x = f32[8]{0} parameter(0)
  %z = f32[4]{0} parameter(1)
  %zero = s32[] constant(0)
  %t0 = (f32[8]{0}, f32[4]{0}) tuple(%x, %z)
  %t1 = (s32[], (f32[8]{0}, f32[4]{0})) tuple(%zero, %t0)
  %w = (s32[], (f32[8]{0}, f32[4]{0})) while(%t1), condition=%condition, body=%body
  ROOT %n = f32[4]{0} negate(%w#1#1)
}
"""


def test_elements_of_tuples_are_read_as_jax_0_12_prints_them() -> None:
    graph = read(ELEMENTS)
    assert graph.notes == ()
    assert [(k.name, k.bytes_in, k.bytes_out) for k in graph.kernels] == [
        ("next", 4, 4),
        ("y", 16, 16),
        ("less", 8, 1),
        ("n", 16, 16),
    ]
    sources = {
        (edge.source.what, edge.source.index)
        for edge in graph.edges
        if edge.target.what == KERNEL and edge.target.index == 3
    }
    assert sources == {(KERNEL, 1)}


def test_a_scope_that_reads_as_an_attribute_is_none() -> None:
    text = """HloModule m
body {
  ROOT a = f32[4]{0} parameter(0)
}
ENTRY main {
  p = f32[4]{0} parameter(0)
  ROOT s = f32[4]{0} sine(p), metadata={op_name="jit(f)/calls=body/sin"}
}
"""
    entry = parse(text).entry
    assert entry is not None
    instruction = entry.instructions[-1]
    assert instruction.opcode == "sine"
    assert instruction.called == {}


def test_a_product_that_lost_its_name_has_that_of_the_bitcast_behind_it() -> None:
    text = """HloModule m
ENTRY main {
  m = f32[8,8]{1,0} parameter(0)
  v = f32[8,1]{1,0} parameter(1)
  d = f32[8,1]{1,0} dot(m, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT b = f32[8]{0} bitcast(d), metadata={op_name="jit(f)/eq[3]/dot_general"}
}
"""
    (kernel,) = read(text).kernels
    assert (kernel.equations, kernel.ends_at) == (("3",), "3")


def test_loops_may_be_nested_deeper_than_python_recurses() -> None:
    depth = 3000
    parts = ["HloModule deep"]
    for level in range(depth):
        inner = (
            f"  ROOT %w = f32[8]{{0}} while(%p), condition=%c, body=%b{level + 1}"
            if level < depth - 1
            else "  ROOT %n = f32[8]{0} negate(%p)"
        )
        parts.append(
            f"%b{level} (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n{inner}\n}}"
        )
    parts.append(
        "%c (p: f32[8]) -> pred[] {\n  %p = f32[8]{0} parameter(0)\n  ROOT %t = pred[] constant(true)\n}"
    )
    parts.append(
        "ENTRY %main (x: f32[8]) -> f32[8] {\n  %x = f32[8]{0} parameter(0)\n"
        "  ROOT %w = f32[8]{0} while(%x), condition=%c, body=%b0\n}"
    )
    graph = read("\n\n".join(parts))
    assert graph.kernel_count == 1
    assert len(graph.kernels[0].loops) == depth


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(material.names()), st.data())
def test_texts_that_were_cut_or_garbled_are_read_as_far_as_they_go(
    name: tuple[str, str], data: st.DataObject
) -> None:
    text = material.text(*name)[:20_000]
    at = data.draw(st.integers(0, len(text)))
    junk = data.draw(st.text(max_size=12))
    read(text[:at] + junk + text[at + data.draw(st.integers(0, 40)) :])
    read(text[:at])


SELECTED = """HloModule m, is_scheduled=true

ENTRY %main (x: f32[64,500]) -> (f32[64,8], f32[4,8]) {
  %x = f32[64,500]{1,0} parameter(0)
  %c = f32[4,8]{1,0} constant({...})
  %top = (f32[64,8]{1,0}, s32[64,8]{1,0}) custom-call(%x), custom_call_target="__gpu$TopK"
  %v = f32[64,8]{1,0} get-tuple-element(%top), index=0, metadata={op_name="jit(f)/eq[3]/top_k"}
  %n = f32[4,8]{1,0} negate(%c), metadata={op_name="jit(f)/eq[4]/neg"}
  ROOT %t = (f32[64,8]{1,0}, f32[4,8]{1,0}) tuple(%v, %n)
}
"""


def test_a_call_that_xla_made_has_the_name_of_what_takes_its_results() -> None:
    top, _ = read(SELECTED, platform="cuda").kernels
    assert (top.equations, top.ends_at, top.feeds) == (("3",), "3", ())


@pytest.mark.parametrize(
    ("own", "folded"),
    [("f32[4,8]", False), ("f32[32]", False), ("s32[32]", True), ("f32[8]", True)],
)
def test_a_constant_that_xla_reshapes_is_the_program_s(own: str, folded: bool) -> None:
    (constant,) = read(SELECTED, constants=[own]).constants
    assert constant.folded is folded


@pytest.mark.parametrize(
    ("primitive", "what", "reason"),
    [
        ("dot_general", "matmul", "matmul"),
        ("fft", "FFT", "fft"),
        ("conv_general_dilated", "convolution", "convolution"),
    ],
)
def test_a_convolution_is_what_the_program_wrote(primitive: str, what: str, reason: str) -> None:
    text = f"""HloModule m, is_scheduled=true

%inside (a: f32[8,8]) -> f32[8,8] {{
  %a = f32[8,8]{{1,0}} parameter(0)
  ROOT %c = f32[8,8]{{1,0}} convolution(%a, %a), dim_labels=bf_io->bf, metadata={{op_name="jit(f)/eq[0]/{primitive}"}}
}}

ENTRY %main (x: f32[8,8]) -> f32[8,8] {{
  %x = f32[8,8]{{1,0}} parameter(0)
  %d = f32[8,8]{{1,0}} convolution(%x, %x), dim_labels=bf_io->bf, metadata={{op_name="jit(f)/eq[1]/{primitive}"}}
  ROOT %y = f32[8,8]{{1,0}} fusion(%d), kind=kOutput, calls=%inside
}}
"""
    alone, fused = read(text, platform="tpu").kernels
    assert (alone.title, alone.ends_because) == (what, reason)
    assert (fused.title, fused.ends_because) == (f"output fusion ({what})", reason)


def test_a_number_sign_that_is_no_element_of_a_tuple_is_no_error() -> None:
    assert read("HloModule m\nENTRY main {\n  %a = f32[] add(%b#x, %c#1)\n}").kernel_count == 1


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("Cholesky", "Cholesky"),
        ("EighTpu", "symmetric eigenvalues"),
        ("InvertDiagBlocksLowerTriangular", "inverse of diagonal blocks"),
        ("LuRealDecompositionBlock", "LU of a block"),
        ("QrDecompositionBlock", "QR of a block"),
        ("CompactWyHelper", "QR of a block"),
        ("X64SplitHigh", "32-bit halves"),
    ],
)
def test_what_a_tpu_calls_has_words(target: str, what: str) -> None:
    (kernel,) = read(SELECTED.replace("__gpu$TopK", target), platform="tpu").kernels[:1]
    assert (kernel.kind, kernel.title) == ("library", what)


@pytest.mark.parametrize(("number", "what"), [("f32[]", "memset"), ("f32[8]", "copy")])
def test_copies_of_one_number_that_fill_arrays_are_a_memset(number: str, what: str) -> None:
    text = f"""HloModule m, is_scheduled=true

%filled () -> (f32[8], f32[8]) {{
  %zero = {number} constant(0)
  %zeros = f32[8]{{0}} broadcast(%zero), dimensions={{}}
  %again = f32[8]{{0}} copy(%zeros)
  ROOT %both = (f32[8]{{0}}, f32[8]{{0}}) tuple(%zeros, %again)
}}

ENTRY %main () -> (f32[8], f32[8]) {{
  ROOT %f = (f32[8]{{0}}, f32[8]{{0}}) fusion(), kind=kLoop, calls=%filled
}}
"""
    (kernel,) = read(text, platform="cuda").kernels
    assert kernel.title == what


@pytest.mark.parametrize(
    ("platform", "what"),
    [("cpu", "host callback"), ("cuda", "host callback (copies to the host)")],
)
def test_a_callback_on_a_cpu_copies_nothing(platform: str, what: str) -> None:
    text = SELECTED.replace("__gpu$TopK", "xla_ffi_python_cpu_callback")
    (kernel,) = read(text, platform=platform).kernels[:1]
    assert kernel.title == what


LITERAL = """HloModule m, is_scheduled=true

%unused (a: f32[2,16]) -> f32[2,16] {
  %a = f32[2,16]{1,0} parameter(0)
  ??? unknown
  ROOT %folded = f32[2,16]{1,0} constant({...})
}

%inside (b: f32[2,16]) -> f32[2,16] {
  %b = f32[2,16]{1,0} parameter(0)
  %table = f32[2,16]{1,0} constant({
  { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 },
  { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 }
}), metadata={op_name="jit(f)/eq[0]/const"}
  ROOT %sum = f32[2,16]{1,0} add(%b, %table), metadata={op_name="jit(f)/eq[1]/add"}
}

ENTRY %main (x: f32[2,16]) -> f32[2,16] {
  %x = f32[2,16]{1,0} parameter(0)
  also unknown
  ROOT %y = f32[2,16]{1,0} fusion(%x), kind=kLoop, calls=%inside
}
"""


def test_a_literal_on_several_lines_is_one_constant() -> None:
    graph = read(LITERAL)
    (kernel,) = graph.kernels
    assert kernel.equations == ("1",), "the lines after the literal belong to the fusion too"
    assert LITERAL.split("\n")[kernel.instruction].startswith("  ROOT %y = ")


def test_constants_and_unknown_lines_of_all_computations_are_in_the_order_of_the_text() -> None:
    graph = read(LITERAL)
    assert [(constant.name, constant.equations) for constant in graph.constants] == [
        ("folded", ()),
        ("table", ("0",)),
    ]
    assert graph.notes == ("cannot parse line 5: ??? unknown", "cannot parse line 20: also unknown")


@pytest.mark.parametrize("enabled", [True, False])
def test_reading_leaves_garbage_collection_as_it_was(enabled: bool) -> None:
    was_enabled = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        read(LITERAL)
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_enabled else gc.disable)()


def test_an_attribute_is_found_by_its_whole_name_and_read_to_its_end() -> None:
    text = (
        ", output_dimensions={2}, dimensions={0,1}, window={size=3x3 pad=1_1x1_1},"
        ' custom_call_target="a, b", sharding={{replicated}, {maximal device=1}}, channel_id=7'
    )
    assert attribute(text, "dimensions") == "{0,1}"
    assert attribute(text, "size") == "3x3"
    assert attribute(text, "custom_call_target") == "a, b"
    assert attribute(text, "sharding") == "{{replicated}, {maximal device=1}}"
    assert attribute(text, "channel_id") == "7"
    assert attribute(text, "group_count") == ""
    assert attribute("dimensions={0", "dimensions") == ""


FRAMES = """\
FileNames
1 "a.py"
2 "b.py"

FunctionNames
1 "f"
2 "g"

FileLocations
1 {file_name_id=1 function_name_id=1 line=3 end_line=4 column=5 end_column=6}
2 {file_name_id=2 function_name_id=2 line=7 end_line=7 column=1 end_column=2}

StackFrames
1 {file_location_id=1 parent_frame_id=1}
2 {file_location_id=2 parent_frame_id=2}

"""


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ("stack_frame_id=2", [("b.py", 7, 1, 7, 2), ("a.py", 3, 5, 4, 6)]),
        ('source_file="a.py" source_line=3', [("a.py", 3, 0, 3, 0)]),
        ("stack_frame_id=9", []),
    ],
)
def test_the_frames_of_an_instruction_are_read_from_every_release(
    metadata: str, expected: list[tuple[str, int, int, int, int]]
) -> None:
    frames = HloFrames(f"HloModule f\n\n{FRAMES}ENTRY %main () -> f32[] {{\n}}\n")
    fields = fields_of(f'metadata={{op_name="jit(f)/mul" {metadata}}}')
    assert [astuple(frame) for frame in frames.of(fields)] == expected
