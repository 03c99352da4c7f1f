"""Objects of Flax and optax as arguments: how a run records them."""

from __future__ import annotations

from pathlib import Path

from jaxsight.recording import recorded_file
from tests.recording.test_until_seen import record

LINEN = """\
import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training import train_state


class Block(nn.Module):
    width: int

    @nn.compact
    def __call__(self, x, train: bool = False):
        return nn.relu(nn.Dense(self.width)(x))


class Net(nn.Module):
    width: int = 4

    def setup(self):
        self.block = Block(self.width)

    def encode(self, x):
        return self.block(jnp.sin(x))

    def __call__(self, x):
        return jnp.sum(self.encode(x))


@jax.jit
def train_step(state, x):
    grads = jax.grad(lambda p: state.apply_fn({"params": p}, x))(state.params)
    return state.apply_gradients(grads=grads)


def from_variables(module, x):
    return jnp.sum(x)


def make_penalty(scale):
    def penalty(w):
        return scale * jnp.sum(w)

    return penalty


def regularized(penalty, w):
    return jax.grad(penalty)(w)


def main():
    net = Net(8)
    params = net.init(jax.random.key(0), jnp.ones((3, 2)))["params"]
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1))
    state = train_state.TrainState.create(apply_fn=net.apply, params=params, tx=tx)
    train_step(state, jnp.ones((3, 2)))
    from_variables(net.bind({"params": params}), jnp.ones(3))
    regularized(make_penalty(3.0), jnp.ones(5))


main()
"""

NNX = """\
import jax
import jax.numpy as jnp
import optax
from flax import nnx


class Net(nnx.Module):
    def __init__(self, din, *, rngs):
        self.linear = nnx.Linear(din, 3, rngs=rngs)

    def __call__(self, x):
        return jnp.sum(self.linear(x))


@nnx.jit
def train_step(model, optimizer, x):
    grads = nnx.grad(lambda m: m(x))(model)
    optimizer.update(model, grads)


def norm(state):
    return jnp.sum(state["linear"]["bias"][...])


def main():
    model = Net(2, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    train_step(model, optimizer, jnp.ones((4, 2)))
    norm(nnx.state(model))


main()
"""


def inputs(folder: Path, text: str) -> dict[str, str]:
    """Run a program until it is seen; return the inputs of each function."""
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text)
    ran = record(folder, "--until-seen", "--", "python", "train.py")
    assert ran.returncode == 0, ran.stderr
    return {name: calls[0].inputs for (_, name), calls in recorded_file.read(folder).items()}


def test_modules_of_linen_and_states_of_their_training(tmp_path: Path) -> None:
    found = inputs(tmp_path, LINEN)
    assert found["Block.__call__"] == "self = Block(width=8)\nx: f32[3, 2]\ntrain: False"
    assert found["Net.__call__"] == "self = Net(width=8)\nx: f32[3, 2]"
    assert found["Net.encode"] == "self = Net(width=8)\nx: f32[3, 2]"
    assert found["from_variables"] == "x: f32[3]", "a module with variables is none without"
    assert found["regularized"] == "penalty = make_penalty(scale=3.0)\nw: f32[5]"
    state, x = found["train_step"].split("\n")
    assert state.startswith(
        "state = train_state.TrainState(step=jnp.asarray(0), apply_fn=Net(width=8).apply, "
        "params={'block': "
        "{'Dense_0': {'bias': jnp.zeros((8,), 'float32'), 'kernel': jnp.zeros((2, 8), 'float32')}}}, "
        "tx=optax.chain(optax.clip_by_global_norm(max_norm=1.0), optax.sgd(learning_rate=0.1)), "
        "opt_state=(optax.EmptyState(), "
    )
    assert x == "x: f32[3, 2]"


def test_states_and_optimizers_of_nnx(tmp_path: Path) -> None:
    found = inputs(tmp_path, NNX)
    model = "Net(din=2, rngs=nnx.Rngs(0))"
    assert found["Net.__call__"] == f"self = {model}\nx: f32[4, 2]"
    assert found["norm"] == (
        "state = nnx.State({'linear': {'bias': nnx.Param(jnp.zeros((3,), 'float32')), "
        "'kernel': nnx.Param(jnp.zeros((2, 3), 'float32'))}})"
    )
    optimizer = (
        f"\noptimizer = nnx.Optimizer(model={model}, "
        "tx=optax.adam(learning_rate=0.001), wrt=nnx.Param)"
    )
    assert found["train_step"] == f"model = {model}{optimizer}\nx: f32[4, 2]"
