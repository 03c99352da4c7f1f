"""Lowered and exported functions, and files of programs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from jaxsight import sourcerize
from jaxsight_source.api import text_of
from jaxsight_source.programs.contents import LARGEST
from jaxsight_source.stablehlo.program import UnreadableProgram
from tests.jaxsight_source.test_programs_given import LAYER, body, layer

X = jnp.ones(3)
LAYER_TEXT = (
    'def layer(params, x):\n    return {"out": jnp.tanh(params["w"] @ x + params["b"]), "x": x}'
)
FLAT_TEXT = "def layer(params_b, params_w, x):\n    return jnp.tanh(params_w @ x + params_b), x"


def test_lowered_function_keeps_parameters_and_pytrees():
    source = sourcerize(jax.jit(layer).lower(LAYER, X), style="pretty")
    assert body(source) == LAYER_TEXT


def test_exported_function_keeps_parameters_and_pytrees():
    source = sourcerize(export.export(jax.jit(layer))(LAYER, X), style="pretty")
    assert body(source) == LAYER_TEXT


def test_dropped_arguments_keep_their_places():
    lowered = jax.jit(lambda x, unused, *, key: x + key).lower(X, {"a": 1.0}, key=2.0)
    source = sourcerize(lowered, name="f")
    assert "def f(x, arg1, *, key):" in source


def test_program_for_several_platforms_takes_which():
    exported = export.export(jax.jit(jnp.sin), platforms=["cpu", "cuda"])(X)
    assert "def sin(platform_index, x):" in sourcerize(exported)


def test_derivative_of_an_exported_function_is_written_too():
    exported = export.export(jax.jit(lambda x: x**2))(X)
    source = sourcerize(exported.vjp(), name="vjp")
    assert source.count("def vjp(") == 1
    assert "eagerly" in source.proofs


def test_program_of_64_bits_is_written_for_them():
    with jax.enable_x64(True):
        lowered = jax.jit(lambda x: x * 2).lower(np.ones(3))
    source = sourcerize(lowered)
    assert "Holds with jax_enable_x64 on." in source
    assert "under jit" in source.proofs


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, bytes], Path]:
    """Write a file; return its path."""

    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def test_files_are_read_by_their_content(written: Callable[[str, bytes], Path]) -> None:
    lowered = jax.jit(layer).lower(LAYER, X)
    exported = export.export(jax.jit(layer))(LAYER, X)
    text = lowered.as_text(debug_info=True)
    for content, expected in (
        (text.encode(), FLAT_TEXT),
        (f"// RUN: %s\n\n{text}".encode(), FLAT_TEXT),
        (exported.mlir_module_serialized, FLAT_TEXT),
        (bytes(exported.serialize()), LAYER_TEXT),
        (lowered.as_text("hlo").encode(), None),
        (lowered.compiler_ir("hlo").as_serialized_hlo_module_proto(), None),
    ):
        path = written("program.txt", content)
        source = sourcerize(path, style="pretty")
        assert sourcerize(content, style="pretty") == source
        assert source.proofs[-1] == "bits"
        if expected is not None:
            assert source.proofs[-2] == "stablehlo"
            assert body(source) == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "found nothing"),
        (b"import jax\n", "expected StableHLO, HLO or a serialized Exported, found `import jax`"),
        (b"\x7fELF\x02\x01\x01\x00", "expected StableHLO, HLO or a serialized Exported"),
        (b"module @jit_f {", "cannot read the program"),
        (b"module {\n}", "expected a function @main, found no public function"),
    ],
)
def test_what_is_no_program_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(UnreadableProgram, match=words):
        sourcerize(content)


def chain(first: str, step: str, last: int = 31) -> str:
    """A first line, and lines that refer to the one before several times."""
    return "\n".join([first, *(step.format(n, n - 1) for n in range(1, last))])


ADDS = """
module {{ func.func @main(%x: {0}) -> tensor<f32> {{
  %0 = stablehlo.constant dense<1.0> : tensor<f32> {1}
  %1 = stablehlo.add %0, %0 {2} : tensor<f32> {1}
  return %1 : tensor<f32>
}} }}
"""
SCALAR = "tensor<f32>"
TWICE = """
func.func private @f{0}(%x: tensor<f32>) -> tensor<f32> {{
  %0 = call @f{1}(%x) : (tensor<f32>) -> tensor<f32>
  %1 = call @f{1}(%0) : (tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}"""
HLO = """%f{0} (p: f32[]) -> f32[] {{
  %p = f32[] parameter(0)
  %a = f32[] call(%p), to_apply=%f{1}
  ROOT %r = f32[] call(%a), to_apply=%f{1}
}}"""
HOSTILE = {
    "arrays": chain("#a0 = [1 : i32]", "#a{0} = [#a{1}, #a{1}]")
    + ADDS.format(SCALAR, "", "{a = #a30}"),
    "dictionaries": chain("#a0 = {x = 1 : i32}", "#a{0} = {{x = #a{1}, y = #a{1}}}")
    + ADDS.format(SCALAR, "", "{a = #a30}"),
    "locations": chain('#l0 = loc("x")', "#l{0} = loc(callsite(#l{1} at #l{1}))")
    + ADDS.format(SCALAR, "loc(#l30)", ""),
    "types": chain("!t0 = tuple<tensor<f32>>", "!t{0} = tuple<!t{1}, !t{1}>")
    + ADDS.format("!t30", "", ""),
    "calls": chain(
        f"func.func private @f0(%x: {SCALAR}) -> {SCALAR} {{ return %x : {SCALAR} }}", TWICE
    )
    + f"\nfunc.func @main(%x: {SCALAR}) -> {SCALAR} {{"
    + f"\n %0 = call @f30(%x) : ({SCALAR}) -> {SCALAR}\n return %0 : {SCALAR} }}",
    "calls of HLO": "HloModule m\n\n"
    + chain("%f0 (p: f32[]) -> f32[] {\n ROOT %p = f32[] parameter(0)\n}", HLO)
    + "\nENTRY %main (p: f32[]) -> f32[] {\n %p = f32[] parameter(0)\n"
    " ROOT %r = f32[] call(%p), to_apply=%f30\n}\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_file_of_a_large_program_is_refused(kind: str) -> None:
    content = HOSTILE[kind].encode()
    assert len(content) < 8000
    with pytest.raises(UnreadableProgram, match="written out, it has more than 10,000,000"):
        sourcerize(content)
    with pytest.raises(UnreadableProgram, match="written out, it has more than 10,000,000"):
        text_of(content, {"to": "stablehlo"})


def test_truncated_files_are_refused() -> None:
    exported = export.export(jax.jit(layer))(LAYER, X)
    serialized = bytes(exported.serialize())
    for content in (exported.mlir_module_serialized, serialized):
        with pytest.raises(UnreadableProgram):
            sourcerize(content[: len(content) * 2 // 3])


def test_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.mlir"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(UnreadableProgram, match=r"large.mlir is larger than 64 MiB"):
        sourcerize(path)


def test_missing_flatbuffers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    serialized: Any = bytes(export.export(jax.jit(jnp.sin))(X).serialize())
    monkeypatch.setitem(sys.modules, "jax._src.export.serialization", None)
    with pytest.raises(UnreadableProgram, match="needs the package flatbuffers; help: pip install"):
        sourcerize(serialized)


def test_compiled_function_is_refused() -> None:
    with pytest.raises(TypeError, match="a compiled function has no StableHLO"):
        sourcerize(jax.jit(jnp.sin).lower(X).compile())


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("stablehlo", "stablehlo.sine %arg0"),
        ("hlo", " sine("),
        ("jaxpr", "sin a"),
        ("graph", '[label="sin"];'),
    ],
)
def test_program_file_in_another_language(language: str, words: str) -> None:
    hlo = jax.jit(jnp.sin).lower(X).as_text("hlo").encode()
    shown = text_of(hlo, {"to": language})
    assert words in shown.text
    assert (shown.source, shown.equations) == ("HLO text", 1)


def test_stablehlo_has_lines_of_python() -> None:
    exported = export.export(jax.jit(layer))(LAYER, X)
    lines = text_of(exported.mlir_module_serialized, {"to": "stablehlo"}).text.splitlines()
    (tanh,) = (line for line in lines if "stablehlo.tanh" in line)
    assert tanh.partition("  // ")[2].startswith(layer.__code__.co_filename)


@pytest.mark.parametrize("debug_info", [False, True])
@pytest.mark.parametrize("style", ["lax", "pretty"])
def test_lines_of_source_are_linked_to_lines_of_stablehlo(debug_info: bool, style: str) -> None:
    lowered = jax.jit(lambda x: jax.nn.softmax(jnp.sin(x)) + x).lower(X)
    program = lowered.as_text(debug_info=debug_info)
    options = {"style": style, "run": False}
    written = text_of(program.encode(), {"to": "python", "options": options, "linked": True})
    lines, program_lines = written.text.split("\n"), program.split("\n")
    words = {"lax": (("lax.sin(", "sine"), ("lax.div(", "divide"), ("lax.add(", "add"))}
    pretty = (("jnp.sin(", "sine"), ("softmax(", "exponential"), ("softmax(", "divide"))
    for ours, theirs in words.get(style, pretty):
        (number,) = (number for number, line in enumerate(lines) if ours in line)
        linked = [program_lines[line] for ours, line in written.links if ours == number]
        assert any(f"stablehlo.{theirs}" in line for line in linked), (ours, linked)
