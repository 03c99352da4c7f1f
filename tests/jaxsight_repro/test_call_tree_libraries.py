"""Programs that use libraries: their classes become stand-ins."""

from __future__ import annotations

import pytest

from jaxsight_repro.failures import normalized
from tests.jaxsight_repro.call_trees import PRELUDE, observe

pytest.importorskip("equinox")
pytest.importorskip("flax")
pytest.importorskip("optax")

FAILING = {
    "eqx_err": """
import equinox as eqx, optax
class Net(eqx.Module):
    l1: eqx.nn.Linear
    l2: eqx.nn.Linear
    scale: float = eqx.field(static=True)
    def __init__(self, key):
        a, b = jax.random.split(key)
        self.l1 = eqx.nn.Linear(3, 8, key=a); self.l2 = eqx.nn.Linear(7, 1, key=b); self.scale = 2.0
    def __call__(self, x):
        return self.l2(jax.nn.relu(self.l1(x))) * self.scale
@eqx.filter_value_and_grad
def loss(net, x, y):
    return jnp.mean((jax.vmap(net)(x) - y) ** 2)
opt = optax.adam(1e-3)
@eqx.filter_jit
def step(net, state, x, y):
    l, g = loss(net, x, y)
    u, state = opt.update(g, state)
    return eqx.apply_updates(net, u), state, l
net = Net(jax.random.PRNGKey(0)); state = opt.init(eqx.filter(net, eqx.is_array))
step(net, state, jnp.ones((4,3)), jnp.ones((4,1)))
""",
    "eqx_plain": """
import equinox as eqx
net = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.PRNGKey(0))
@jax.jit
def f(x, y):
    return jax.vmap(net)(x) @ y
f(jnp.ones((4,3)), jnp.ones(3))
""",
    "flax_linen": """
import flax.linen as nn
class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4)(x); x = nn.relu(x)
        return nn.Dense(2)(x) @ jnp.ones(3)
m = M()
jax.jit(m.init)(jax.random.PRNGKey(0), jnp.ones((2,3)))
""",
    "flax_nnx": """
from flax import nnx
class M(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs); self.b = nnx.Linear(5, 2, rngs=rngs)
    def __call__(self, x): return self.b(nnx.relu(self.a(x)))
m = M(nnx.Rngs(0))
@nnx.jit
def step(m, x):
    return nnx.grad(lambda m: m(x).sum())(m)
step(m, jnp.ones((2,3)))
""",
    "vectorize": """
@jax.jit
def f(x):
    return jnp.vectorize(lambda a: a @ jnp.ones(4), signature='(n)->()')(x)
f(jnp.ones((2,3)))
""",
    "optax": """
import optax
opt = optax.adam(1e-3)
p = {'w': jnp.ones(3)}
s = opt.init(p)
@jax.jit
def step(p, s):
    g = jax.grad(lambda p: (p['w'] ** 2).sum())(p)
    u, s = opt.update({'w': g['w'][:2]}, s, p)
    return optax.apply_updates(p, u), s
step(p, s)
""",
}

GOOD = {
    "eqxjit": (
        """
import equinox as eqx
net = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.PRNGKey(0))
dyn, static = eqx.partition(net, eqx.is_array)
@jax.jit
def main(dyn, x, y):
    def loss(dyn):
        return jnp.mean((jax.vmap(eqx.combine(dyn, static))(x) - y)**2)
    return jax.value_and_grad(loss)(dyn)
""",
        "(dyn, jnp.ones((4,3)), jnp.ones((4,1)))",
    ),
    "nnx": (
        """
from flax import nnx
class M(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs); self.b = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, x): return self.b(nnx.relu(self.a(x)))
m = M(nnx.Rngs(0))
graph, st = nnx.split(m)
@jax.jit
def main(st, x):
    return jax.grad(lambda st: nnx.merge(graph, st)(x).sum())(st)
""",
        "(st, jnp.ones((2,3)))",
    ),
    "linen": (
        """
import flax.linen as nn
class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4)(x); x = nn.relu(x); x = nn.LayerNorm()(x)
        return nn.Dense(2)(x)
m = M(); p = m.init(jax.random.PRNGKey(0), jnp.ones((2,3)))
@jax.jit
def main(p, x):
    return jax.value_and_grad(lambda p: (m.apply(p, x)**2).sum())(p)
""",
        "(p, jnp.ones((2,3)))",
    ),
}

FILTERED = {
    "filter_jit": """
import equinox as eqx
net = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.PRNGKey(0))
@eqx.filter_jit
def step(net, x):
    return jax.vmap(net)(x) * 2
def main(x):
    return step(net, x)
""",
    "filter_value_and_grad": """
import equinox as eqx
net = eqx.nn.MLP(3, 1, 8, 2, key=jax.random.PRNGKey(0))
@eqx.filter_jit
@eqx.filter_value_and_grad
def loss(net, x):
    return jnp.mean(jax.vmap(net)(x) ** 2)
def main(x):
    value, grads = loss(net, x)
    return value, grads.layers[0].weight
""",
}


@pytest.mark.slow
def test_jitted_functions_of_equinox_return_the_same() -> None:
    texts = {name: PRELUDE + text for name, text in FILTERED.items()}
    for observed in observe(texts, dict.fromkeys(FILTERED, "(jnp.ones((4, 3)),)")):
        assert observed.error is None, observed.message
        assert observed.equal, observed.text
        assert "equinox" not in observed.text


@pytest.mark.slow
def test_errors_in_libraries() -> None:
    for observed in observe({name: PRELUDE + text for name, text in FAILING.items()}):
        assert observed.text, observed.name
        assert "equinox" not in observed.text
        assert "flax" not in observed.text
        failure = observed.run().failure
        assert failure.name == observed.error, observed.text
        assert normalized(failure.message) == normalized(observed.message), observed.text


@pytest.mark.slow
def test_programs_of_libraries_are_the_same() -> None:
    texts = {name: PRELUDE + text for name, (text, _) in GOOD.items()}
    for observed in observe(texts, {name: args for name, (_, args) in GOOD.items()}):
        assert observed.error is None, observed.message
        assert observed.equal, observed.text
        assert observed.difference is None, f"{observed.difference}\n{observed.text}"
