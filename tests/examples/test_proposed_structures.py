"""What loops, indices, objects and docstrings suggest of a function's inputs."""

from __future__ import annotations

import pytest

from tests.examples.test_proposals import proposed

CASES = {
    "sizes that are one less": (
        """
def advantages(rewards, values, gamma):
    deltas = rewards + gamma * values[1:] - values[:-1]
    return jnp.cumsum(deltas)
""",
        "rewards: f32[N, D]; values: f32[M, D]; gamma: f32[]; where N=3, D=8, M=4",
    ),
    "new axes": (
        """
def distances(x, y):
    return jnp.sqrt(jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1))
""",
        "x, y: f32[N, D]; where N=4, D=8",
    ),
    "arrays of indices": (
        """
def messages(nodes, senders, receivers, weight):
    sent = nodes[senders] @ weight
    return jax.ops.segment_sum(sent, receivers, nodes.shape[0])
""",
        "nodes: f32[N, D]; senders, receivers: i32[D]; weight: f32[N, D]; where N=4, D=8",
    ),
    "what a loop carries": (
        """
def powers(x, a, count):
    return jax.lax.fori_loop(0, count, lambda i, y: y @ a, x)
""",
        "x: f32[N, D]; a: f32[D, D]; count: 4; where N=4, D=8",
    ),
    "slices of a cache": (
        """
def updated(cache, k, index):
    return jax.lax.dynamic_update_slice(cache["k"], k, (0, index, 0))
""",
        "cache: {'k': f32[B, N, D]}; k: f32[B, N, D]; index: i32[]; where B=16, N=4, D=8",
    ),
    "convolutions": (
        """
def block(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=numbers)
""",
        "x: f32[B, H, W, C]; kernel: f32[B, H, C, M]; where B=4, H=8, W=16, C=32, M=64",
    ),
    "pairs in a list": (
        """
def mlp(layers, x):
    for w, b in layers[:-1]:
        x = jnp.tanh(x @ w + b)
    w, b = layers[-1]
    return x @ w + b
""",
        "layers: [(f32[N, N], f32[N]), (f32[N, N], f32[N])]; x: f32[M, N]; where N=16, M=4",
    ),
    "dicts in a dict": (
        """
def block(params, x):
    h = x * params["norm"]["scale"]
    return h @ params["w"]
""",
        (
            "params: {'norm': {'scale': f32[N, D]}, 'w': f32[D, M]}; x: f32[N, D]; where N=4, "
            "D=16, M=8"
        ),
    ),
    "items that are indices": (
        """
def chosen(batch):
    return batch["values"][jnp.arange(4), batch["actions"]]
""",
        "batch: {'values': f32[N, D], 'actions': i32[D]}; where N=4, D=8",
    ),
    "methods of an object": (
        """
def step(params, state, grads, optimizer):
    updates, state = optimizer.update(grads, state)
    return jax.tree.map(jnp.add, params, updates), state
""",
        (
            "params: {'w': f32[N, D], 'b': f32[D]}; state: f32[N, D]; grads: {'w': f32[N, D], "
            "'b': f32[D]}; optimizer = type('Optimizer', (), {'update': lambda self, grads, "
            "state, **kwargs: (grads, state)})(); where N=4, D=8"
        ),
    ),
    "functions of pytrees": (
        """
def step(params, batch, loss):
    return jax.grad(loss)(params, batch)
""",
        (
            "params: {'w': f32[N, D], 'b': f32[D]}; batch: f32[N, D]; loss = lambda params, "
            "batch: sum((leaf ** 2).sum() for leaf in jax.tree.leaves(params)); where N=4, D=8"
        ),
    ),
    "dtypes that are listed": (
        """
def largest(x, dtype):
    assert dtype in (jnp.float8_e4m3fn, jnp.float8_e5m2)
    return jnp.clip(x, max=jnp.finfo(dtype).max)
""",
        "x: f32[N, D]; dtype = jnp.float8_e4m3fn; where N=4, D=8",
    ),
    "types in a docstring": (
        '''
def tiled(x, count, kernel):
    """Tile an array.

    :param x: an array
    :param count: copies of it
    :type count: int
    :param kernel: callable of an array
    """
    return jnp.tile(jax.jit(kernel)(x), count)
''',
        "x: f32[N, D]; count: 4; kernel = lambda x: x; where N=4, D=8",
    ),
    "attributes of a class": (
        """
from typing import NamedTuple

class Transition(NamedTuple):
    value: jax.Array
    action: jax.Array

def chosen(batch: Transition, x):
    return x[:, batch.action] * batch.value.reshape(-1)
""",
        (
            "batch = Transition(value=jnp.ones((8, 8)), action=jnp.ones((8,), dtype=int)); x: "
            "f32[N, D]; where N=4, D=8"
        ),
    ),
    "methods that make keys": (
        """
def dropped(scope, x, rate):
    kept = jax.random.bernoulli(scope.make_rng("dropout"), 1.0 - rate, x.shape)
    return jnp.where(kept, x, 0.0)
""",
        (
            "scope = type('Scope', (), {'make_rng': lambda self, *args: jax.random.key(0)})(); x:"
            " f32[N, D]; rate: f32[]; where N=4, D=8"
        ),
    ),
    "probabilistic programs": (
        """
import numpyro
import numpyro.distributions as dist
from numpyro.handlers import seed, substitute, trace

def traced(model, model_args, params):
    model = substitute(seed(model, jax.random.key(0)), data=params)
    return trace(model).get_trace(*model_args)
""",
        (
            "model = lambda *args, **kwargs: numpyro.sample('x', dist.Normal(0.0, 1.0)); "
            "model_args: (); params: {'x': f32[]}"
        ),
    ),
    "sizes in prose": (
        '''
def energy(pos, vel, mass, G):
    """
    pos is an N x 3 matrix of positions
    vel is an N x 3 matrix of velocities
    mass is an N x 1 vector of masses
    G is Newton's Gravitational constant
    """
    return 0.5 * jnp.sum(mass * vel**2) - G * jnp.sum(pos)
''',
        "pos, vel: f32[N, 3]; mass: f32[N, 1]; G: f32[]; where N=4",
    ),
    "comments": (
        """
def attend(
    q,  # (B, T, H)
    k,  # (B, S, H)
):
    return jnp.einsum("bth,bsh->bts", q, k)
""",
        "q: f32[B, T, H]; k: f32[B, S, H]; where B=4, T=8, H=16, S=32",
    ),
    "labels of images": (
        """
def train_step(state, batch):
    logits = state.apply_fn(state.params, batch["image"])
    return jnp.mean(logits * jax.nn.one_hot(batch["label"], 10))
""",
        (
            "state = type('State', (), {'apply_fn': lambda self, variables, x, *args, **kwargs: "
            "x, 'params': jnp.ones((8, 8))})(); batch: {'image': f32[B, H, W, C], 'label': "
            "i32[B]}; where B=16, H=32, W=4, C=8"
        ),
    ),
    "sizes of layers": (
        """
def init_mlp(layer_sizes, key):
    params = []
    for n_in, n_out in zip(layer_sizes[:-1], layer_sizes[1:]):
        key, subkey = jax.random.split(key)
        params.append((jax.random.normal(subkey, (n_in, n_out)), jnp.zeros(n_out)))
    return params
""",
        "layer_sizes: [8, 16, 8]; key: key<fry>[]",
    ),
    "a function under vmap in a variable": (
        """
def predict(params, image):
    for w, b in params:
        image = jnp.tanh(jnp.dot(w, image) + b)
    return image

batched = jax.vmap(predict, in_axes=(None, 0))

def loss(params, images, targets):
    return jnp.mean(batched(params, images) * targets)
""",
        (
            "params: [(f32[N, N], f32[N]), (f32[N, N], f32[N])]; images: f32[M, N]; targets: "
            "f32[M, D]; where N=16, M=4, D=8"
        ),
    ),
    "modules of Linen, and their layers": (
        """
from flax import linen as nn

class CNN(nn.Module):
    classes: int

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(features=32, kernel_size=(3, 3))(x))
        return nn.Dense(self.classes)(x.reshape((x.shape[0], -1)))
""",
        "self = CNN(classes=8); x: f32[B, H, W, C]; where B=4, H=8, W=16, C=32",
    ),
    "layers of NNX": (
        """
from flax import nnx

class CNN(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(1, 32, kernel_size=(3, 3), rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.conv(x))
""",
        "self = CNN(rngs=nnx.Rngs(0)); x: f32[B, H, W, 1]; where B=4, H=8, W=16",
    ),
    "methods of the own class": (
        """
class Cost:
    def norm(self, x):
        return jnp.einsum("d,d->", x, x)

    def __call__(self, x, y):
        return self.norm(x) - self.norm(y)
""",
        "self = Cost(); x: f32[D]; y: f32[N]; where D=4, N=8",
    ),
    "the state of an optimizer": (
        """
import optax

optimizer = optax.adam(1e-3)

def step(params, opt_state, x, y):
    grads = jax.grad(lambda p: jnp.mean((x @ p["w"] - y) ** 2))(params)
    return optimizer.update(grads, opt_state)
""",
        (
            "params: {'w': f32[N, D]}; opt_state = optimizer.init({'w': jnp.ones((16, 32))}); x: "
            "f32[M, N]; y: f32[M, D]; where N=16, D=32, M=64"
        ),
    ),
    "assertions of chex": (
        """
import chex

def td_error(v, r, action):
    chex.assert_rank([v, r, action], [2, 1, 0])
    chex.assert_type([v, r, action], [float, float, int])
    return v.sum(-1) - r
""",
        "v: f32[N, D]; r: f32[N]; action: i32[]; where N=4, D=8",
    ),
}


KNOWN = {
    "arrays": (
        """
def step(state, images, labels):
    return jnp.mean(images) * jax.nn.one_hot(labels, 10).sum()
""",
        {"state": "TrainState", "images": "f32[8, 28, 28, 1]"},
        "labels: i32[8]",
    ),
    "names of sizes": (
        """
def dense(x, w):
    return x @ w
""",
        {"x": "f32[B, D]"},
        "w: f32[D, M]; where D=4, M=8",
    ),
    "dicts and literals": (
        """
def apply(params, x, axis):
    return jnp.sum(x @ params["w"], axis=axis)
""",
        {"params": "{'w': f32[3, 5]}", "axis": "0"},
        "x: f32[N, 3]; where N=4",
    ),
}


@pytest.mark.parametrize("case", KNOWN)
def test_inputs_agree_with_known(case: str) -> None:
    source, known, lines = KNOWN[case]
    assert proposed(source.lstrip("\n"), known=known) == lines


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_inferred_from(case: str) -> None:
    source, lines = CASES[case]
    assert proposed(source.lstrip("\n")) == lines
