"""Modules, parameters and optimizer states as trees with figures."""

from __future__ import annotations

import pytest

from jaxsight.wire.observations import Tree
from tests.tracer.handlers.lab import lab

HEAD = "import jax, jax.numpy as jnp\n"


def tree(source: str, expression: str) -> Tree:
    """The tree of an argument."""
    function = "\ndef f(value, x):\n    return x\n"
    traced = lab(HEAD + source + function).trace("f", value=f"= {expression}", x="f32[2]")
    trees = dict(traced.trees)
    assert set(trees) == {"value"}, "no tree"
    assert any(seen.tree == trees["value"] for seen in traced.seen)
    return trees["value"]


def lines(found: Tree) -> list[str]:
    """Rows as `name: text, elements, bytes`, indented; equal parts with their number."""
    return [
        f"{'  ' * row.depth}{f'{row.times} × ' if row.times > 1 else ''}{row.name}: {row.text}, "
        f"{row.elements}, {row.bytes}"
        for row in found.rows
    ]


NNX = """
import optax
from flax import nnx

class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(8, 16, rngs=rngs)
        self.down = nnx.Linear(16, 8, rngs=rngs)
        self.heads = 2

class Model(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(32, 8, rngs=rngs)
        self.tied = self.embed.embedding
        self.blocks = nnx.List([Block(rngs) for _ in range(12)])
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __getattr__(self, name):
        raise RuntimeError(f"user code runs for {name}")

    def __repr__(self):
        raise RuntimeError("user code runs")
"""


def test_modules_and_states_of_nnx() -> None:
    pytest.importorskip("flax.nnx")
    found = tree(NNX, "nnx.eval_shape(lambda: Model(nnx.Rngs(0)))")
    assert found.is_module
    assert lines(found)[0] == ": Model, 3632, 14604"
    assert {
        "  embed: Embed(embedding=f32[32,8]), 256, 1024",
        "  tied: f32[32,8] (shared), 0, 0",
        "  12 × blocks[0..11]: Block(heads=2), 280, 1120",
        "    up: Linear(bias=f32[16], kernel=f32[8,16]), 144, 576",
        "    down: Linear(bias=f32[8], kernel=f32[16,8]), 136, 544",
    } < set(lines(found))
    norm = next(row for row in found.rows if row.name == "norm")
    assert "mean=f32[8] BatchStat" in norm.text
    assert (norm.elements, norm.bytes) == (16, 128)
    found = tree(NNX, "nnx.state(nnx.eval_shape(lambda: Block(nnx.Rngs(0))))")
    assert not found.is_module
    assert lines(found) == [
        ": State, 280, 1120",
        "  down: State(bias=f32[8], kernel=f32[16,8]), 136, 544",
        "  up: State(bias=f32[16], kernel=f32[8,16]), 144, 576",
    ]


def test_modules_of_equinox_and_states_of_optax() -> None:
    source = "import equinox as eqx, optax\nKEY = jax.random.key(0)\n"
    source += "MLP = eqx.filter_eval_shape(eqx.nn.MLP, 4, 2, 8, 2, key=KEY)\n"
    source += "ARRAYS = eqx.filter(MLP, lambda leaf: hasattr(leaf, 'shape'))\n"
    found = tree(source, "MLP")
    assert found.is_module
    assert lines(found) == [
        ": MLP, 130, 520",
        "  layers: tuple, 130, 520",
        "    [0]: Linear(weight=f32[8,4], bias=f32[8]), 40, 160",
        "    [1]: Linear(weight=f32[8,8], bias=f32[8]), 72, 288",
        "    [2]: Linear(weight=f32[2,8], bias=f32[2]), 18, 72",
    ]
    found = tree(
        source,
        "jax.eval_shape(optax.adam(1e-3).init, ARRAYS)",
    )
    assert [row.name for row in found.rows if row.depth == 2] == ["count", "mu", "nu"]
    assert found.rows[0].bytes == 2 * 520 + 4


LINEN = """
import flax.linen as nn

class Block(nn.Module):
    size: int = 8

    @nn.compact
    def __call__(self, x):
        for _ in range(11):
            x = nn.Dense(self.size)(x)
        return x

VARIABLES = jax.eval_shape(Block().init, jax.random.key(0), jnp.ones((2, 8)))
"""


def test_modules_and_parameters_of_linen() -> None:
    pytest.importorskip("flax.linen")
    dense = "11 × Dense_0..10: {bias: f32[8], kernel: f32[8,8]}, 72, 288"
    assert lines(tree(LINEN, "VARIABLES['params']")) == [": dict, 792, 3168", f"  {dense}"]
    bound = lines(tree(LINEN, "Block().bind(VARIABLES)"))
    assert bound == [": Block(size=8), 792, 3168", "  params: dict, 792, 3168", f"    {dense}"]
    file = lab(HEAD + LINEN + "\ndef f(x):\n    model = Block(4)\n    return x\n")
    assert file.seen(file.trace("f", x="f32[2]"))["model ="] == "Block(size=4)"


def test_a_large_tree_is_summarised() -> None:
    source = """
def parameters():
    w, b = jax.ShapeDtypeStruct((4, 4), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.float32)
    layers = {f"layer_{i}": {"w": w, "b": b} for i in range(500)}
    return layers | {f"other_{i}": [jax.ShapeDtypeStruct((i + 1,), jnp.int8)] * 2 for i in range(200)}
"""
    found = tree(source, "parameters()")
    assert len(found.rows) <= 60
    assert found.is_complete
    assert lines(found)[1] == "  500 × layer_0..499: {b: f32[4], w: f32[4,4]}, 20, 80"
    assert found.rows[0].arrays == 1400


def test_keys_of_any_kind_and_what_contains_itself() -> None:
    source = """
class Name:
    def __repr__(self):
        raise RuntimeError

def strange():
    value = {("a", 1): jnp.zeros(3), Name(): jnp.zeros(2), -1: jnp.zeros(1)}
    return [value, value, jnp.zeros(4)]

def f(x):
    value = strange()
    value.append(value)
    return x
"""
    traced = lab(HEAD + source).trace("f", x="f32[2]")
    tree = next(seen.tree for seen in traced.seen if seen.tree is not None)
    assert tree.rows[0].arrays == 7


def test_the_class_of_a_graph_is_named() -> None:
    pytest.importorskip("flax.nnx")
    text = (
        HEAD
        + NNX
        + "\ndef f(x):\n    graph, state = nnx.split(nnx.eval_shape(lambda: Block(nnx.Rngs(0))))\n    return x\n"
    )
    file = lab(text)
    assert file.seen(file.trace("f", x="f32[2]"))["graph ="] == "GraphDef(Block)"
