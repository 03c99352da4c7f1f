"""Programs of calls that succeed: the written program is the same one."""

from __future__ import annotations

import pytest

from tests.jaxsight_repro.call_trees import PRELUDE, observe

QUICK = {
    "grad_scan": (
        """
def f(x): return lax.scan(lambda c,t:(jnp.sin(c)*t,c), x, jnp.ones(3))[0].sum()
main=jax.jit(jax.vmap(jax.grad(f)))
""",
        "(jnp.ones((2,4)),)",
    ),
    "mlp": (
        """

def layer(p, x):
    return jax.nn.relu(x @ p['w'] + p['b'])
def loss(params, x, y):
    for p in params:
        x = layer(p, x)
    return jnp.mean((x - y) ** 2)
@jax.jit
def main(params, x, y):
    l, g = jax.value_and_grad(loss)(params, x, y)
    return l, jax.tree.map(lambda p, d: p - 0.1 * d, params, g)
""",
        "([{'w': jnp.ones((3,4)), 'b': jnp.zeros(4)}, {'w': jnp.ones((4,2)), 'b': jnp.zeros(2)}], jnp.ones((5,3)), jnp.ones((5,2)))",
    ),
    "custom_vjp": (
        """
@partial(jax.custom_vjp, nondiff_argnums=(1,))
def clip(x, lim):
    return x * 1.0
def fwd(x, lim):
    return clip(x, lim), x
def bwd(lim, x, g):
    return (jnp.clip(g, -lim, lim),)
clip.defvjp(fwd, bwd)
@jax.jit
def main(x):
    return jax.grad(lambda v: (clip(v, 0.5) ** 2).sum())(x)
""",
        "(jnp.ones(3),)",
    ),
    "inner_jit": (
        """
@jax.jit
def g(x):
    return jnp.sin(x) + 1
@jax.jit
def main(x):
    return g(x) + g(x * 2) + g(x[:2]).sum()
""",
        "(jnp.ones(3),)",
    ),
}

MORE = {
    "while_": (
        """
@jax.jit
def main(x):
    def cond(s):
        i, v = s
        return (i < 10) & (jnp.sum(v) < 1e3)
    def body(s):
        i, v = s
        return i + 1, v * 2 + x
    return lax.while_loop(cond, body, (0, x))
""",
        "(jnp.ones(3),)",
    ),
    "fori": (
        """
@jax.jit
def main(x):
    return lax.fori_loop(0, 5, lambda i, c: c * jnp.cos(x) + i, x)
""",
        "(jnp.ones(3),)",
    ),
    "cond": (
        """
@jax.jit
def main(p, x):
    return lax.cond(p, lambda y: jnp.sin(y), lambda y: y * 2, x)
""",
        "(True, jnp.ones(3))",
    ),
    "switch": (
        """
@jax.jit
def main(i, x):
    return lax.switch(i, [jnp.sin, lambda y: y * 2, lambda y: y @ y * y], x)
""",
        "(1, jnp.ones(3))",
    ),
    "checkpoint": (
        """
@partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_saveable)
def block(w, x):
    return jnp.tanh(x @ w)
@jax.jit
def main(w, x):
    return jax.grad(lambda w: block(w, block(w, x)).sum())(w)
""",
        "(jnp.ones((3,3)), jnp.ones((2,3)))",
    ),
    "custom_jvp": (
        """
@jax.custom_jvp
def soft(x):
    return jnp.log1p(jnp.exp(x))
@soft.defjvp
def rule(p, t):
    (x,), (dx,) = p, t
    return soft(x), jax.nn.sigmoid(x) * dx
@jax.jit
def main(x):
    return jax.grad(lambda v: soft(v).sum())(x)
""",
        "(jnp.ones(3),)",
    ),
    "jvp": (
        """
def f(x, y):
    return jnp.sin(x) * y
@jax.jit
def main(x, y):
    return jax.jvp(f, (x, y), (y, x))
""",
        "(jnp.ones(3), jnp.ones(3))",
    ),
    "vjp": (
        """
def f(x, y):
    return jnp.sin(x) * y, y
@jax.jit
def main(x, y):
    (a, b), pull = jax.vjp(f, x, y)
    return pull((a, b))
""",
        "(jnp.ones(3), jnp.ones(3))",
    ),
    "keys": (
        """
@jax.jit
def main(key, x):
    a, b = jax.random.split(key)
    return x + jax.random.normal(a, x.shape) * jax.random.uniform(b)
""",
        "(jax.random.key(0), jnp.ones(3))",
    ),
    "named": (
        """
P = collections.namedtuple('P', 'pos vel')
@jax.jit
def main(p):
    def step(p, _):
        return P(p.pos + p.vel, p.vel * 0.9), p.pos
    return lax.scan(step, p, None, length=4)
""",
        "(P(jnp.ones(2), jnp.ones(2)),)",
    ),
    "dataclass": (
        """
@partial(jax.tree_util.register_dataclass, data_fields=['w'], meta_fields=['kind'])
@dataclasses.dataclass
class M:
    w: object
    kind: str
@jax.jit
def main(m, x):
    g = jax.grad(lambda m: (x @ m.w).sum())(m)
    return M(m.w - g.w, m.kind)
""",
        "(M(jnp.ones((3,2)), 'k'), jnp.ones(3))",
    ),
    "vmap_axes": (
        """
def f(a, b, c):
    return a @ b + c
@jax.jit
def main(a, b):
    return jax.vmap(f, in_axes=(0, None, 0), out_axes=0)(a, b, a.sum(1))
""",
        "(jnp.ones((4,3)), jnp.ones((3,)))",
    ),
    "axis_name": (
        """
@jax.jit
def main(x):
    return jax.vmap(lambda v: v / lax.psum(v, 'i'), axis_name='i')(x)
""",
        "(jnp.ones((4,3)),)",
    ),
    "map_assoc": (
        """
@jax.jit
def main(x):
    return lax.map(lambda v: v * 2, x) + lax.associative_scan(lambda a, b: a * b, x)
""",
        "(jnp.ones((4,3)),)",
    ),
    "indexing": (
        """
@jax.jit
def main(x, i):
    return x.at[i].add(1.0)[::2] + jnp.where(x > 0, x, -x)[:2]
""",
        "(jnp.ones(4), 2)",
    ),
    "hessian": (
        """
def f(x): return jnp.sum(x ** 3)
main = jax.jit(jax.hessian(f))
""",
        "(jnp.ones(3),)",
    ),
    "eager_vmap": (
        """
def main(x):
    return jax.vmap(lambda v: jnp.sin(v) * jnp.arange(3.0) + v.sum())(x)
""",
        "(jnp.ones((2,3)),)",
    ),
    "capture_np": (
        """
T = np.arange(12.0, dtype=np.float32).reshape(4, 3)
@jax.jit
def main(x):
    return T @ x
""",
        "(jnp.ones(3),)",
    ),
    "sort_fft": (
        """
@jax.jit
def main(x):
    return jnp.sort(jnp.abs(jnp.fft.fft(x))) + jnp.cumsum(x)
""",
        "(jnp.ones(8),)",
    ),
    "attention": (
        """

def attend(q, k, v):
    s = jnp.einsum('bqhd,bkhd->bhqk', q, k) / jnp.sqrt(q.shape[-1])
    return jnp.einsum('bhqk,bkhd->bqhd', jax.nn.softmax(s), v)
@jax.jit
def main(q, k, v):
    return jax.value_and_grad(lambda q: attend(q, k, v).sum())(q)
""",
        "(jnp.ones((2,3,4,5)), jnp.ones((2,3,4,5)), jnp.ones((2,3,4,5)))",
    ),
    "shard_map": (
        """

mesh = jax.make_mesh((1,), ('i',), axis_types=(jax.sharding.AxisType.Auto,))
S = jax.sharding.PartitionSpec
@jax.jit
def main(x):
    return jax.shard_map(lambda v: lax.psum(v * 2, 'i'), mesh=mesh, in_specs=S('i'), out_specs=S())(x)
""",
        "(jnp.ones(4),)",
    ),
    "linear": (
        """
@jax.jit
def main(x):
    y, f = jax.linearize(jnp.sin, x)
    return f(x) + y
""",
        "(jnp.ones(3),)",
    ),
    "scan_dict": (
        """
@jax.jit
def main(p, xs):
    def step(c, x):
        c = {'a': c['a'] + x['u'], 'n': c['n'] + 1}
        return c, {'y': c['a'] * 2, 'z': x['v']}
    c, ys = lax.scan(step, {'a': p, 'n': 0}, xs, reverse=True, unroll=2)
    return ys['y'], c['a']
""",
        "(jnp.ones(2), {'u': jnp.ones((4,2)), 'v': jnp.ones(4)})",
    ),
    "linearize": (
        """
@jax.jit
def main(x):
    y, f = jax.linearize(lambda v: jnp.sin(v) * v, x)
    return f(x) + y + f(y)
""",
        "(jnp.ones(3),)",
    ),
}


def _is_the_same(programs: dict[str, tuple[str, str]]) -> None:
    texts = {name: PRELUDE + text for name, (text, _) in programs.items()}
    for observed in observe(texts, {name: args for name, (_, args) in programs.items()}):
        assert observed.error is None, observed.message
        assert observed.equal, observed.text
        assert observed.difference is None, f"{observed.difference}\n{observed.text}"


def test_programs_are_the_same() -> None:
    _is_the_same(QUICK)


@pytest.mark.slow
def test_more_programs_are_the_same() -> None:
    _is_the_same(MORE)


def test_calls_and_names_are_those_of_the_program() -> None:
    text, args = QUICK["grad_scan"]
    (observed,) = observe({"grad_scan": PRELUDE + text}, {"grad_scan": args})
    assert (
        observed.text.partition("from jax import lax\n\n\n")[2]
        == """def f(x):
    scanned_0, _ = lax.scan(lambda c, t: (jnp.sin(c) * t, c), x, jnp.ones(3))
    return jnp.sum(scanned_0)


def main(x):
    return jax.jit(jax.vmap(jax.grad(f)))(x)
"""
    )
