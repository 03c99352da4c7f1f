"""The functions and modules that equations of a lowered program were created in."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jaxsight.wire.messages.replies import LoweredEquation
from jaxsight.wire.messages.requests import NEW, Lower
from tests.tracer.handlers.lab import lab

PLAIN = """
import jax
import jax.numpy as jnp

def norm(x):
    return x / jnp.sqrt(jnp.sum(x * x))

@jax.jit
def block(x, w):
    return norm(x) @ w

def forward(ws, x):
    for w in ws:
        x = block(x, w)
    with jax.named_scope("head"):
        return jnp.tanh(x)

def loss(ws, x):
    return forward(ws, x).sum()

def train(ws, x):
    return jax.grad(loss)(ws, x), jax.lax.scan(lambda c, w: (block(c, w), None), x, ws)

def twice(x):
    return jnp.cos(jax.checkpoint(norm)(x))

def twice_differentiated(x):
    return jax.grad(lambda x: twice(x).sum())(x)
"""


def scopes(source: str, function: str, **arguments: str) -> dict[str, set[str]]:
    """The primitives of each scope; `<-` marks those of a backward pass."""
    traced = (made := lab(source)).trace(function, **arguments)
    lowered = made.ask(Lower(NEW, traced.id, "cpu"))
    found: dict[str, set[str]] = {}
    for scope, equation in _marked(lowered.equations):
        found.setdefault(scope, set()).add(equation.primitive)
    return found


def _marked(equations: tuple[LoweredEquation, ...]) -> Iterator[tuple[str, LoweredEquation]]:
    for equation in equations:
        yield ("<- " if equation.backward else "") + "/".join(equation.scope), equation


def test_functions_called_by_the_traced_one() -> None:
    found = scopes(PLAIN, "train", ws="f32[3,8,8]", x="f32[8]")
    assert "sqrt" in found["loss/forward/block/norm"]
    assert "dot_general" in found["loss/forward/block"]
    assert "tanh" in found["loss/forward/head"]
    assert "dot_general" in found["<- loss/forward/block"]
    # The same jaxpr of `block`, which JAX traced once, below the scan.
    assert "dot_general" in found["block"]
    assert "sqrt" in found["block/norm"]
    assert "scan" in found[""]
    assert not any("train" in scope for scope in found)


LOOP = """
import jax.numpy as jnp

def layer(x):
    return jnp.sin(x)

def f(x):
    for _ in range(3):
        x = layer(x)
    return x + layer(x)
"""


def test_each_round_of_a_loop_is_in_the_function_that_it_calls() -> None:
    traced = (made := lab(LOOP)).trace("f", x="f32[8]")
    equations = made.ask(Lower(NEW, traced.id, "cpu")).equations
    called = [(equation.primitive, equation.scope) for equation in equations]
    assert called == [*[("sin", ("layer",))] * 4, ("add", ())]


def test_equations_that_a_checkpoint_computes_again() -> None:
    found = scopes(PLAIN, "twice_differentiated", x="f32[8]")
    assert "sqrt" in found["<- twice/norm"]
    assert "sin" in found["twice"]


NNX = """
import jax
import jax.numpy as jnp
from flax import nnx

class Block(nnx.Module):
    def __init__(self, rngs):
        self.norm = nnx.LayerNorm(8, rngs=rngs)
        self.up = nnx.Linear(8, 8, rngs=rngs)

    def __call__(self, x):
        return x + self._activated(self.up(self.norm(x)))

    def _activated(self, x):
        return jnp.tanh(x)

class Model(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(16, 8, rngs=rngs)
        self.blocks = nnx.List([Block(rngs) for _ in range(3)])

    def __call__(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.embed.attend(x)

def make():
    return Model(nnx.Rngs(0))

def loss(model, tokens):
    return model(tokens).sum()

@nnx.jit
def step(model, tokens):
    return nnx.value_and_grad(loss)(model, tokens)
"""


@pytest.mark.parametrize("function", ["step", "loss"])
def test_modules_of_nnx_by_their_attributes(function: str) -> None:
    pytest.importorskip("flax.nnx")
    found = scopes(NNX, function, model="= make()", tokens="i32[4]")
    root = "loss/model" if function == "step" else "model"
    assert "dot_general" in found[f"{root}/embed"]
    for index in range(3):
        assert "tanh" in found[f"{root}/blocks[{index}]"]
        assert "dot_general" in found[f"{root}/blocks[{index}]/up"]
        assert "rsqrt" in found[f"{root}/blocks[{index}]/norm"]
        if function == "step":
            assert "dot_general" in found[f"<- {root}/blocks[{index}]/up"]


EQUINOX = """
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

OPTIMIZER = optax.sgd(0.1)

def make():
    return eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))

def loss(model, x):
    return jax.vmap(model)(x).sum()

@eqx.filter_jit
def step(model, state, x):
    grads = eqx.filter_grad(loss)(model, x)
    updates, state = OPTIMIZER.update(grads, state)
    return eqx.apply_updates(model, updates), state
"""


def test_modules_of_equinox_and_functions_of_libraries() -> None:
    found = scopes(
        EQUINOX, "step", model="= make()", state="= OPTIMIZER.init(make())", x="f32[3,4]"
    )
    assert "dot_general" in found["loss/model/layers[0]"]
    assert "dot_general" in found["<- loss/model/layers[1]"]
    assert any(scope.startswith("optax.") for scope in found)
    assert found["equinox.apply_updates"] == {"add"}


LINEN = """
import flax.linen as nn
import jax
import jax.numpy as jnp

class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(8, name="up")(jnp.tanh(x))

class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        for _ in range(2):
            x = Block()(x)
        return x

MODEL = Model()

def make():
    return MODEL.init(jax.random.key(0), jnp.ones((4, 8)))

def loss(params, x):
    return MODEL.apply(params, x).sum()

def gradient(params, x):
    return jax.grad(loss)(params, x)
"""


def test_modules_of_linen_by_their_names() -> None:
    pytest.importorskip("flax.linen")
    found = scopes(LINEN, "gradient", params="= make()", x="f32[4,8]")
    for index in range(2):
        assert "tanh" in found[f"loss/Model/Block_{index}"]
        assert "dot_general" in found[f"<- loss/Model/Block_{index}/up"]


OWN = """
import jax, jax.numpy as jnp
from dataclasses import dataclass

@jax.tree_util.register_dataclass
@dataclass
class Layer:
    w: jax.Array

    def __call__(self, x):
        return jnp.tanh(x @ self.w)

@dataclass
class Trainer:
    layers: list

    def loss(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sum()

def f(x, w):
    return Trainer([Layer(w), Layer(w + 1)]).loss(x)
"""


def test_registered_classes_of_the_user() -> None:
    found = scopes(OWN, "f", x="f32[8]", w="f32[8,8]")
    assert "tanh" in found["Trainer.loss/layers[0]"] & found["Trainer.loss/layers[1]"]
