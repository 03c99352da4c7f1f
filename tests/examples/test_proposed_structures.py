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
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_inferred_from(case: str) -> None:
    source, lines = CASES[case]
    assert proposed(source.lstrip("\n")) == lines
