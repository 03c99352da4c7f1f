"""Kernels, launches and bytes are those of other counts: XLA's thunks, an own reader, a profile.

The thunks are of an H100, as XLA dumped them; `python -m tests.compiler.counting` makes them anew
and compares all programs.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

import jax
import pytest

from jaxsight.compiler.hlo import read
from jaxsight.compiler.hlo.sorts import bitonic_kernels
from tests.compiler.counting import compare, hlo, thunks
from tests.compiler.counting.__main__ import profiled
from tests.compiler.counting.programs import programs

THUNKS = Path(__file__).with_name("thunks.zip")
PROFILED = frozenset(
    {
        "softmax", "nested_3_5", "scan_7", "fori_of_an_argument", "cond_of_a_sum", "loop_in_cond",
        "sort_in_scan", "lexicographic", "callback_in_loop", "donated_update",
    }
)  # fmt: skip


@pytest.mark.parametrize("version", ["0.10.2", "0.12.0.1"])
def test_launches_on_a_gpu_are_xlas_thunks(version: str) -> None:
    with zipfile.ZipFile(THUNKS) as archive:
        texts = {name: archive.read(name).decode() for name in archive.namelist()}
    names = [name for name in texts if name.startswith(version) and name.endswith(".hlo.txt")]
    assert len(names) > 60
    differences = {
        name: problems
        for name in names
        if (
            problems := compare.with_thunks(
                texts[name], texts[name.replace(".hlo.", ".thunks.")], "cuda"
            )
        )
    }
    assert differences == {}


@pytest.mark.parametrize(
    "program", [each for each in programs() if each.name in PROFILED], ids=lambda each: each.name
)
def test_launches_on_a_cpu_are_those_of_a_profile(program, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    compiled = jax.jit(program.function, **program.options).lower(*program.arguments).compile()
    text = compiled.as_text()
    graph = read(text)
    assert compare.with_own_count(text, graph, "cpu") == []
    assert compare.with_profile(text, graph, profiled(compiled, program, tmp_path)) == []


SEQUENCE = """\
001: kCopy  [source       | next=002 (1)] kCopy
002: kWhile [prev=001 (1) | sink        ]
condition:
    003: kCustomKernel [source | sink] compare
  body:
    004: kAsyncStart [source | next=007 (1)] stream=computation_stream[0]
        005: kCopy [source | sink] kCopy
    006: kConditional [prev=004 (1) | sink]
      false_branch:
        007: kGemm [source | sink] x
      true_branch:
        008: kGemm [source | next=009 (1)] x
        009: kFft [prev=008 (1) | sink] x
    010: kAsyncDone [source | sink] async_id=8
"""


@pytest.mark.parametrize(("trips", "counts"), [(4, (6, 13, 9)), (None, (6, 5, 2))])
def test_a_sequence_of_thunks_is_counted(trips: int | None, counts: tuple[int, ...]) -> None:
    launched = thunks.launched(thunks.parse(SEQUENCE), [trips])
    assert (launched.compiled, launched.most, launched.fewest) == counts


def test_the_own_count_sees_what_is_wrong() -> None:
    text = """HloModule m
ENTRY main {
  %p = (f32[8]{0}, f32[4]{0}) parameter(0)
  %a = f32[8]{0} sine(%p#0)
  ROOT %b = f32[4]{0} negate(%p#1)
}
"""
    assert hlo.count(text).moved == {"a": (32, 32), "b": (16, 16)}
    graph = read(text)
    assert compare.with_own_count(text, graph, "cpu") == []
    wrong = read(text.replace("f32[8]", "f32[9]"))
    assert compare.with_own_count(text, wrong, "cpu") == ["a moves (36, 36), not (32, 32)"]


@pytest.mark.parametrize(
    ("length", "width", "kernels"),
    [(2, 8, 1), (1000, 8, 1), (4096, 8, 1), (4097, 8, 3), (65536, 8, 15), (1 << 20, 8, 45)],
)
def test_a_sort_is_many_kernels(length: int, width: int, kernels: int) -> None:
    """Those of 65,536 and of 2^20 numbers with their indices are XLA's thunks of an H100."""
    assert bitonic_kernels(length, width, 48 * 1024) == kernels
