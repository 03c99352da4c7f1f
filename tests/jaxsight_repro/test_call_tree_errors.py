"""Errors that are raised while JAX traces, where there is no jaxpr: the calls are the program."""

from __future__ import annotations

import pytest

from jaxsight_repro.failures import normalized
from tests.jaxsight_repro.call_trees import PRELUDE, Observed, observe

QUICK = {
    "dot": """
@jax.jit
def f(a, b):
    c = jnp.sin(a)
    return jnp.dot(c, b)
f(jnp.ones((3, 4)), jnp.ones((3, 4)))
""",
    "bool": """
@jax.jit
def f(x):
    if jnp.sum(x) > 0:
        return x
    return -x
f(jnp.ones(3))
""",
    "scan_carry": """
def step(carry, x):
    return carry + x, x
@jax.jit
def f(x):
    return lax.scan(step, jnp.zeros((), jnp.int32), x)
f(jnp.ones(3))
""",
    "leak": """
kept = []
@jax.jit
def f(x):
    kept.append(x * 2)
    return x
f(jnp.ones(3))
@jax.jit
def g(x):
    return x + kept[0]
g(jnp.ones(3))
""",
}

MORE = {
    "add": """
@jax.jit
def f(a, b):
    return a * 2 + b
f(jnp.ones(3), jnp.ones(4))
""",
    "concatenate": """
def f(a, b):
    return jnp.concatenate([a, b * 2], axis=1).sum()
jax.grad(f)(jnp.ones((3, 4)), jnp.ones((2, 4)))
""",
    "int": """
@jax.jit
def f(x, n):
    return x[: int(n)]
f(jnp.ones(3), 2)
""",
    "asarray": """
@jax.jit
def f(x):
    return np.sin(x) + 1
f(jnp.ones(3))
""",
    "mask": """
@jax.jit
def f(x):
    y = x * 2
    return y[y > 1]
f(jnp.ones(3))
""",
    "leak_inside": """
kept = []
def body(c, x):
    kept.append(c + x)
    return c, x
@jax.jit
def f(x):
    y, _ = lax.scan(body, 0.0, x)
    return y + kept[0]
f(jnp.ones(3))
""",
    "scan_tree": """
def step(carry, x):
    a, b = carry['a'], carry['b']
    return {'a': a + x}, b
lax.scan(step, {'a': 0.0, 'b': 1.0}, jnp.ones(3))
""",
    "cond_branch": """
@jax.jit
def f(x):
    return lax.cond(x.sum() > 0, lambda y: y, lambda y: y[:1], x)
f(jnp.ones(3))
""",
    "vmap_axes": """
def f(a, b):
    return a @ b
jax.vmap(f, in_axes=(0, 1))(jnp.ones((3, 4)), jnp.ones((4, 5)))
""",
    "vmap_axes_tree": """
def f(a):
    return a['w']
jax.vmap(f, in_axes=({'v': 0},))({'w': jnp.ones((3, 4))})
""",
    "grad_vector": """
def loss(w):
    return w * 2
jax.grad(loss)(jnp.ones(3))
""",
    "grad_int": """
def loss(n):
    return n * 2.0
jax.grad(loss)(3)
""",
    "static_unhashable": """
from functools import partial
@partial(jax.jit, static_argnums=1)
def f(x, axes):
    return x.sum(axes[0])
f(jnp.ones(3), [0])
""",
    "custom_vjp_count": """
@jax.custom_vjp
def f(x, y):
    return x * y
def fwd(x, y):
    return f(x, y), (x, y)
def bwd(res, g):
    x, y = res
    return (g * y,)
f.defvjp(fwd, bwd)
@jax.jit
def loss(x):
    return jax.grad(lambda z: f(z, 2.0 * z).sum())(x)
loss(jnp.ones(3))
""",
    "while_body": """
@jax.jit
def f(x):
    return lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, v[1][:2]), (0, x))
f(jnp.ones(3))
""",
    "zeros_dynamic": """
@jax.jit
def f(n):
    return jnp.zeros((n, 3))
f(4)
""",
    "nested": """
def inner(w, x):
    h = jnp.tanh(x @ w)
    return jnp.sum(h @ w)
def step(w, xs):
    return jax.vmap(lambda x: jax.grad(inner)(w, x))(xs).sum(0)
jax.jit(step)(jnp.ones((4, 5)), jnp.ones((2, 4)))
""",
    "user_raise": """
@jax.jit
def f(x):
    y = x + 1
    if y.shape[0] != 4:
        raise ValueError(f'expected 4 rows, got {y.shape[0]}')
    return y
f(jnp.ones(3))
""",
    "own_class": """
class Rejected(KeyError):
    def __init__(self, rows, limit):
        super().__init__(rows)
        self.limit = limit
    def __str__(self):
        return f'over {self.limit}'
@jax.jit
def f(x):
    y = x + 1
    if y.shape[0] != 4:
        raise Rejected(y.shape, 4)
    return y
f(jnp.ones(3))
""",
    "library_class": """
import json
@jax.jit
def f(x):
    return x * json.loads('[1,')
f(jnp.ones(3))
""",
    "custom_vmap": """
@jax.custom_batching.custom_vmap
def f(x):
    return jnp.sin(x) @ jnp.ones(4)
@f.def_vmap
def rule(size, batched, x):
    return jnp.cos(x), batched[0]
jax.jit(lambda x: f(x))(jnp.ones(3))
""",
    "custom_vmap_rule": """
@jax.custom_batching.custom_vmap
def f(x):
    return jnp.sin(x)
@f.def_vmap
def rule(size, batched, x):
    return jnp.cos(x) @ jnp.ones(4), batched[0]
jax.vmap(f)(jnp.ones((2, 3)))
""",
    "einsum": """
@jax.jit
def f(x, y):
    return jnp.einsum('ij,jk->ik', x, y)
f(jnp.ones((2, 3)), jnp.ones((2, 3)))
""",
    "fori": """
@jax.jit
def f(x):
    return lax.fori_loop(0, 3, lambda i, c: c.astype(jnp.int32), x)
f(jnp.ones(3))
""",
    "switch": """
@jax.jit
def f(i, x):
    return lax.switch(i, [lambda y: y, lambda y: y + 1j], x)
f(0, jnp.ones(3))
""",
    "item": """
@jax.jit
def f(x):
    return x.sum().item()
f(jnp.ones(3))
""",
    "bad_arg": """
@jax.jit
def f(x):
    return x
f('text')
""",
    "bad_result": """
@jax.jit
def f(x):
    return 'text'
f(jnp.ones(3))
""",
    "missing_arg": """
@jax.jit
def f(x, y):
    return x
f(jnp.ones(3))
""",
    "set": """
@jax.jit
def f(x):
    x[0] = 1.0
    return x
f(jnp.ones(3))
""",
    "psum": """
@jax.jit
def f(x):
    return lax.psum(x, 'i')
f(jnp.ones(3))
""",
    "checkpoint": """
@jax.checkpoint
def block(x):
    return jnp.sin(x) @ x
def f(x):
    return block(x).sum()
jax.jit(jax.grad(f))(jnp.ones((2,3)))
""",
    "jvp": """
def f(x):
    return x * 2
jax.jvp(f, (jnp.ones(3),), (jnp.ones(4),))
""",
    "vjp_ct": """
@jax.jit
def f(x):
    y, pull = jax.vjp(jnp.sin, x)
    y, pull = jax.vjp(lambda v: jnp.sin(v), x)
    return pull(jnp.ones(4))
f(jnp.ones(3))
""",
    "eager_dot": """
jnp.dot(jnp.ones((3, 4)), jnp.ones((3, 4)))
""",
    "eager_static": """
f = jax.jit(lambda x, n: x, static_argnums=1)
def g(x):
    return f(x, {'a': 1})
jax.vmap(g)(jnp.ones(3))
""",
    "keyerror": """
@jax.jit
def f(p):
    return p['w'] + p['missing']
f({'w': jnp.ones(3)})
""",
    "lowered": """
def f(x):
    return x @ x
jax.jit(f).lower(jnp.ones((2, 3)))
""",
    "eval_shape": """
jax.eval_shape(lambda x: x + jnp.ones(4), jax.ShapeDtypeStruct((3,), jnp.float32))
""",
    "linearize": """
@jax.jit
def f(x):
    y, g = jax.linearize(lambda v: jnp.sin(v).sum(), x)
    return g(jnp.ones(4))
f(jnp.ones(3))
""",
    "method": """
@jax.jit
def f(x):
    return x.sum(axis=3)
f(jnp.ones(3))
""",
    "rmul": """
@jax.jit
def f(x):
    return np.ones(4) * x
f(jnp.ones(3))
""",
    "make_jaxpr": """
jax.make_jaxpr(lambda x: x + jnp.ones(4))(jnp.ones(3))
""",
    "key": """
@jax.jit
def f(key, x):
    a, b = jax.random.split(key)
    return jax.random.normal(a, (x,))
f(jax.random.PRNGKey(0), 3)
""",
    "reshape": """
@jax.jit
def f(x):
    return x.reshape(2, 3)
f(jnp.ones(4))
""",
    "relu_shape": """
@jax.jit
def f(x, y):
    return jax.nn.relu(x) @ jax.nn.softmax(y)
f(jnp.ones((2, 3)), jnp.ones(2))
""",
    "attribute": """
@jax.jit
def f(x):
    return x.foo
f(jnp.ones(3))
""",
    "hash": """
@jax.jit
def f(x):
    return {x: 1}
f(jnp.ones(3))
""",
    "iter0": """
@jax.jit
def f(x):
    a, b = x
    return a
f(jnp.ones(3))
""",
}


def _fails_alike(observed: Observed) -> None:
    """Check that the written file raises the program's error in a process without jaxsight."""
    assert observed.error, "the program does not fail"
    assert observed.text, "no tree was recorded"
    failure = observed.run().failure
    assert failure.name == observed.error, observed.text
    assert normalized(failure.message) == normalized(observed.message), observed.text


@pytest.mark.slow
def test_errors_while_tracing() -> None:
    for observed in observe({name: PRELUDE + text for name, text in QUICK.items()}):
        _fails_alike(observed)


@pytest.mark.slow
def test_more_errors_while_tracing() -> None:
    for observed in observe({name: PRELUDE + text for name, text in MORE.items()}):
        _fails_alike(observed)


def test_only_the_failing_calls_are_written() -> None:
    program = """
@jax.jit
def unused(x):
    return x * 3

def scaled(x, rate):
    kept = jnp.cos(x)
    hidden = jnp.tanh(x * rate)
    return jnp.dot(hidden, jnp.ones(4))

unused(jnp.ones(3))
jax.vmap(scaled, in_axes=(0, None))(jnp.ones((2, 3)), 0.5)
"""
    (observed,) = observe({"scaled": PRELUDE + program})
    assert "unused" not in observed.text
    assert "cos" not in observed.text
    assert (
        observed.text.partition("import jax.numpy as jnp\n\n\n")[2]
        == """def scaled(x, rate):
    return jnp.dot(jnp.tanh(x * 0.5), jnp.ones(4))


def main(x):
    return jax.vmap(scaled, in_axes=(0, None))(x, 0.5)
"""
    )
