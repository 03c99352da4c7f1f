"""Programs with symbolic dimensions become functions of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

from jaxsight import sourcerize
from jaxsight.cli.program_files.written import verdict
from jaxsight.sourcerizer.errors import Unsourceable
from jaxsight.sourcerizer.file_text import text_of
from jaxsight.sourcerizer.stablehlo import UnreadableProgram
from jaxsight.sourcerizer.written import Source

Shape = tuple[Any, ...]


def exported(
    function: Callable[..., object], *shapes: str, constraints: tuple[str, ...] = ()
) -> Any:
    scope = export.SymbolicScope(constraints)
    structs = [
        jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), jnp.float32)
        for shape in shapes
    ]
    return export.export(jax.jit(function))(*structs)


def body(source: Source, name: str) -> str:
    return source[source.index(f"def {name}(") :].rstrip()


def check(source: Source, function: Callable[..., object], *shapes: tuple[int, ...]) -> None:
    """Compare the written function with the original for sizes that it was not compared for."""
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    generator = np.random.default_rng(0)
    arrays = [jnp.asarray(generator.normal(size=shape), jnp.float32) for shape in shapes]
    written = namespace[function.__name__]
    expected = jax.tree.leaves(jax.jit(function)(*arrays))
    for one, other in zip(expected, jax.tree.leaves(jax.jit(written)(*arrays)), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def is_for_every_size(source: Source) -> bool:
    return "for every size" in source.proofs and "Holds for every size of " in source


def mlp(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.mean(jax.nn.relu(x @ w), axis=0)


def test_a_batch_that_library_functions_read_has_no_name() -> None:
    source = sourcerize(exported(mlp, "b, 4", "4, 3"), style="pretty")
    assert "def mlp(x, w):\n    return jnp.mean(jax.nn.relu(x @ w), axis=0)" in source
    assert is_for_every_size(source)
    check(source, mlp, (5, 4), (4, 3))


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.softmax(jnp.einsum("qd,kd->qk", q, k)) @ v


def test_sizes_that_depend_on_each_other_are_checked() -> None:
    source = sourcerize(exported(attention, "b, 8", "2*b, 8", "2*b, 8"), style="pretty")
    assert "    if k.shape != (2 * b, 8):\n" in source
    assert "return jax.nn.softmax(jnp.inner(q, k)) @ v" in source
    assert is_for_every_size(source)
    check(source, attention, (3, 8), (6, 8), (6, 8))
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    with pytest.raises(ValueError, match=r"expected k of shape \(2 \* b, 8\)"):
        namespace["attention"](jnp.ones((3, 8)), jnp.ones((5, 8)), jnp.ones((5, 8)))


def test_two_names() -> None:
    def outer(x: jax.Array, y: jax.Array) -> jax.Array:
        return (x[:, None] * y).reshape(-1)

    source = sourcerize(exported(outer, "b", "c"))
    assert "b = x.shape[0]\n    c = y.shape[0]\n" in source
    assert "(b * c,)" in source
    assert is_for_every_size(source)
    check(source, outer, (3,), (5,))


def test_reshapes_concatenations_and_iotas() -> None:
    def parts(x: jax.Array) -> tuple[jax.Array, ...]:
        b = x.shape[0]
        row = jnp.ones((1, 4))
        return (
            x.reshape((b * 4,)),
            lax.iota(jnp.int32, b),
            jnp.concatenate([x, row]),
            jnp.zeros(b + 1),
        )

    source = sourcerize(exported(parts, "b, 4"))
    assert "lax.reshape(x, (4 * b,))" in source
    assert "lax.iota(jnp.int32, b)" in source
    assert "lax.full((b + 1,), 0.0, jnp.float32)" in source
    assert is_for_every_size(source)
    check(source, parts, (5, 4))


def test_a_scan_over_a_named_size() -> None:
    def decayed(xs: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.scan(lambda carry, x: (carry * 0.5 + x, carry), jnp.zeros(4), xs)

    source = sourcerize(exported(decayed, "b, 4"), style="pretty")
    assert "lax.scan(body, jnp.zeros(4), xs)" in source
    assert is_for_every_size(source)
    check(source, decayed, (5, 4))


def test_a_mean_divides_by_the_size() -> None:
    def spread(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.var(x, axis=0), x.sum() / x.shape[0]

    source = sourcerize(exported(spread, "b, 4"), style="pretty")
    assert "jnp.sum(x) / b" in source
    assert is_for_every_size(source)
    check(source, spread, (5, 4))


def test_half_of_the_rows() -> None:
    """JAX's start of the slice is computed; the proof is then for several sizes, which it says."""

    def half(x: jax.Array) -> jax.Array:
        return x[: x.shape[0] // 2]

    source = sourcerize(exported(half, "b, 4"), style="pretty")
    assert "(b // 2, 4)" in source
    assert source.proofs[-1].startswith("for b=13; b=18; b=23; b=1")
    assert "Compared for b=13; b=18; b=23; b=1" in source
    check(source, half, (9, 4))


def test_sizes_meet_the_constraints() -> None:
    def heads(x: jax.Array) -> jax.Array:
        return x.reshape(x.shape[0] // 8, 8).sum(1)

    constraints = ("mod(d, 8) == 0", "d >= 16")
    source = sourcerize(exported(heads, "d", constraints=constraints), style="pretty")
    assert "x.reshape(d // 8, 8)" in source
    check(source, heads, (40,))


def test_a_size_that_no_shape_has_alone_is_solved_for() -> None:
    def doubled(x: jax.Array) -> jax.Array:
        return x.reshape(2, -1).sum(0)

    source = sourcerize(exported(doubled, "2*b"), style="pretty")
    assert "b = x.shape[0] // 2\n" in source
    check(source, doubled, (10,))


def test_sizes_of_parts_of_a_pytree() -> None:
    def pair(x: dict[str, jax.Array]) -> jax.Array:
        return x["a"].sum() + x["b"]

    scope = export.SymbolicScope()
    structs = {
        name: jax.ShapeDtypeStruct(export.symbolic_shape(shape, scope=scope), jnp.float32)
        for name, shape in (("a", "n"), ("b", "n + 1"))
    }
    source = sourcerize(export.export(jax.jit(pair))(structs), style="pretty")
    assert body(source, "pair").startswith(
        'def pair(x):\n    n = x["a"].shape[0]\n    if x["b"].shape != (n + 1,):\n'
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    with pytest.raises(ValueError, match=r"expected x\[\"b\"\] of shape \(n \+ 1,\)"):
        namespace["pair"]({"a": jnp.ones(3), "b": jnp.ones(3)})


def test_a_parameter_of_the_same_name() -> None:
    def scaled(x: jax.Array, b: jax.Array) -> jax.Array:
        return jnp.zeros(x.shape) + b

    source = sourcerize(exported(scaled, "b", ""), style="pretty")
    assert "b_size = x.shape[0]" in source
    check(source, scaled, (5,), ())


def test_calls_of_library_functions() -> None:
    def scores(q, k):
        return jax.nn.softmax(q @ k.T)

    source = sourcerize(exported(scores, "b, 4", "5, 4"), style="pretty")
    assert "return jax.nn.softmax(q @ k.T)" in source
    assert source.proofs[-1] == "for every size"


def test_shapes_in_comments() -> None:
    source = sourcerize(exported(mlp, "b, 4", "4, 3"), style="pretty", shapes=True)
    assert "f32[b,3]" in source
    assert "13" not in source


def test_files(tmp_path: Path) -> None:
    """A serialized function, and StableHLO, whose assertions name the sizes."""
    program = exported(mlp, "b, 4", "4, 3")
    for name, content in _files(program):
        (tmp_path / name).write_bytes(content)
        source = sourcerize(tmp_path / name, style="pretty")
        assert " b=13; " in " ".join(source.split()) or "size of b" in source
        assert "jax.nn.relu(x @ w)" in source
        check(source, mlp, (5, 4), (4, 3))


def _files(program: Any) -> Iterator[tuple[str, bytes]]:
    yield "text", program.mlir_module().encode()
    yield "bytecode", program.mlir_module_serialized


OF_OTHERS = b"""module @add {
  func.func @main(%arg0: tensor<?x4xf32>, %arg1: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %0 = stablehlo.add %arg0, %arg1 : tensor<?x4xf32>
    %1 = stablehlo.multiply %0, %0 : tensor<?x4xf32>
    return %1 : tensor<?x4xf32>
  }
}
"""


def test_sizes_without_names() -> None:
    source = sourcerize(OF_OTHERS)
    assert "n = x.shape[0]\n    if y.shape != (n, 4):\n" in source
    assert "Compared for n=13; " in source


def test_other_languages() -> None:
    content = exported(mlp, "b, 4", "4, 3").mlir_module_serialized
    assert "tensor<?x4xf32>" in text_of(content, {"to": "stablehlo"}).text
    with pytest.raises(
        UnreadableProgram, match="its sizes are symbolic; help: export it for sizes"
    ):
        text_of(content, {"to": "jaxpr"})


def test_the_terminal_reports_the_sizes() -> None:
    shown = text_of(exported(lambda x: x * 2, "b").mlir_module_serialized, SOURCE)
    assert verdict(shown) == (
        "the source lowers to the same StableHLO, 2 equations, for b=13; b=18; b=23; b=1; b=2; b=7"
    )


SOURCE = {"to": "python", "options": {"style": "lax"}}


def test_texts_of_another_structure_are_refused() -> None:
    def unrolled(x: jax.Array) -> jax.Array:
        return jnp.ones(x.shape[0] ** 3 + x.shape[0] ** 2 + x.shape[0]) * x.sum()

    with pytest.raises(Unsourceable, match=r"is no simple expression of the sizes; help: export"):
        sourcerize(exported(unrolled, "b"))


def test_too_many_names_are_refused() -> None:
    program = exported(lambda x: x * 2, "a, b, c, d, e")
    with pytest.raises(UnreadableProgram, match="it has 5 symbolic sizes, more than 4"):
        sourcerize(program)
