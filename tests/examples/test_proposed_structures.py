"""What loops, indices, objects and docstrings suggest of a function's inputs."""

from __future__ import annotations

import pytest

from tests.examples.test_proposals import proposed

CASES = {
    "constants of the module": (
        '''
COUNT = 360

def energy(positions):
    """Add up squares.

    positions: shape (COUNT, 3)
    """
    return jnp.sum(positions**2)
''',
        "positions: f32[360, 3]",
    ),
    "the axes of einops": (
        """
from einops import rearrange

def heads(x, y):
    return rearrange(x, "b t (h d) -> b h t d", h=4), rearrange(y, "b ... -> ... b")
""",
        "x: f32[b, t, D]; y: f32[N, D]; where b=4, t=8, D=16, N=32; not told: y",
    ),
    "sizes that are one less": (
        """
def advantages(rewards, values, gamma):
    deltas = rewards + gamma * values[1:] - values[:-1]
    return jnp.cumsum(deltas)
""",
        "rewards, values: f32[N, D]; gamma: f32[]; where N=4, D=8; not told: rewards, values",
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
        (
            "nodes: f32[N, D]; senders: i32[N, D]; receivers, weight: f32[N, D]; where N=4, D=8; "
            "not told: nodes, receivers, senders"
        ),
    ),
    "slices of a cache": (
        """
def updated(cache, k, index):
    return jax.lax.dynamic_update_slice(cache["k"], k, (0, index, 0))
""",
        "cache: {'k': f32[B, N, D]}; k: f32[B, N, D]; index: i32[]; where B=16, N=4, D=8",
    ),
    "dicts in a dict": (
        """
def block(params, x):
    h = x * params["norm"]["scale"]
    return h @ params["w"]
""",
        (
            "params: {'norm': {'scale': f32[N, D]}, 'w': f32[D, M]}; x: f32[N, D]; where N=4, "
            "D=16, M=8; not told: params, x"
        ),
    ),
    "items that are indices": (
        """
def chosen(batch):
    return batch["values"][jnp.arange(4), batch["actions"]]
""",
        "batch: {'values': f32[N, D], 'actions': i32[N, D]}; where N=4, D=8; not told: batch",
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
        "batch = Transition(); x: f32[N, D]; where N=4, D=8; not told: batch, x",
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
    "methods of the own class": (
        """
class Cost:
    def norm(self, x):
        return jnp.einsum("d,d->", x, x)

    def __call__(self, x, y):
        return self.norm(x) - self.norm(y)
""",
        "self = Cost(); x, y: f32[N, D]; where N=4, D=8; not told: x, y",
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
        "labels: i32[N]; where N=4",
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
        "x: f32[N, 3]; where N=4; not told: x",
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
