"""What a function's text alone suggests: ranks and relations of its parameters, and their kinds."""

from __future__ import annotations

import pytest

from jaxsight import examples
from jaxsight.examples.proposals.inference import infer
from jaxsight.source.module import Module

IMPORTS = "import jax\nimport jax.numpy as jnp\n\n\n"


def proposed(source: str, name: str | None = None) -> str:
    """The proposed lines of the last function, or of one; they have no problems."""
    module = Module.parse(IMPORTS + source)
    functions = {function.qualname: (chunk, function) for chunk, function in module.functions}
    chunk, function = functions[name or next(reversed(functions))]
    inferred = infer(module, chunk, function)
    assert inferred is not None
    text = inferred.proposal.text
    found = examples.of(function, sizes={}, project=text)
    assert found.problems == ()
    assert len(found.sets) == 1
    return "; ".join(inferred.proposal.lines)


CASES = {
    "einsum": (
        """
def attention(q, k, v, mask):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)
""",
        (
            "q: f32[B, H, Q, D]; k: f32[B, H, K, D]; v: f32[B, H, K, N]; mask: bool[B, H, Q, K]; "
            "where B=4, H=8, Q=16, D=32, K=64, N=24"
        ),
    ),
    "unpacking": (
        """
def split_heads(x, num_heads):
    B, L, D = x.shape
    return x.reshape(B, L, num_heads, D // num_heads)
""",
        "x: f32[B, L, D]; num_heads: 2; where B=4, L=8, D=16",
    ),
    "keys, and a function of the module": (
        """
def mlp(params, x):
    h = jax.nn.relu(x @ params["w1"] + params["b1"])
    return h @ params["w2"] + params["b2"]

def loss(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)
""",
        (
            "params: {'w1': f32[N, M], 'b1': f32[M], 'w2': f32[M, K], 'b2': f32[K]}; x: f32[4, N]; "
            "y: f32[4, K]; where N=16, M=32, K=64"
        ),
    ),
    "conditions": (
        """
def kernel(x, y, *, axis):
    if x.ndim != 3:
        raise ValueError
    assert x.shape == y.shape
    return jnp.sum(x * y, axis=axis)
""",
        "x, y: f32[4, 8, 16]; axis: -1",
    ),
    "prose": (
        '''
def embed(table, tokens):
    """Look up.

    Args:
        table: embeddings of shape (vocab, D).
        tokens: integer ids of shape (B, L).
    """
    return table[tokens]
''',
        "table: f32[vocab, D]; tokens: i32[B, L]; where vocab=4, D=8, B=16, L=32",
    ),
    "annotations": (
        """
def f(params, x: Float[Array, "b d"], key, n: int, g: Callable, mode: Literal["a", "b"]):
    return x
""",
        (
            "params: {'w': f32[4, 8], 'b': f32[8]}; x: f32[b, d]; key: key<fry>[]; n: 2; "
            "g = lambda x: x; mode: 'a'; where b=16, d=32"
        ),
    ),
    "random numbers and scalars": (
        """
def sample(key, logits, temperature):
    return jax.random.categorical(key, logits / temperature, axis=-1)
""",
        "key: key<fry>[]; logits: f32[4, 8]; temperature: f32[]",
    ),
    "functions": (
        """
def rollout(step, init, xs):
    return jax.lax.scan(step, init, xs)
""",
        "step = lambda carry, x: (carry, x); init, xs: f32[4, 8]",
    ),
    "vmap": (
        """
def pairwise(xs, ys):
    return jax.vmap(lambda x: jnp.einsum("d,nd->n", x, ys))(xs)
""",
        "xs: f32[4, D]; ys: f32[N, D]; where D=8, N=16",
    ),
    "pytrees": (
        """
def decay(params, rate):
    return jax.tree.map(lambda p: p * rate, params)
""",
        "params: {'w': f32[4, 8], 'b': f32[8]}; rate: f32[]",
    ),
    "static arguments": (
        """
@jax.jit(static_argnames=("n", "shape", "mode"))
def f(x, n, shape, mode):
    return jnp.zeros(shape) + x[:n]
""",
        "x: f32[4, 8]; n: 2; shape: (4, 8); mode: 'name'",
    ),
    "constants": (
        """
def convolve(x, mode):
    if mode not in ("same", "full"):
        raise ValueError
    return jnp.convolve(x, x, mode=mode)
""",
        "x: f32[4, 8]; mode: 'same'",
    ),
    "self": (
        """
class Linear:
    def __init__(self, n_in, n_out, key):
        self.w = jax.random.normal(key, (n_in, n_out))

    def __call__(self, x):
        return x @ self.w
""",
        "self = Linear(n_in=8, n_out=8, key=jax.random.key(0)); x: f32[4, 8]",
    ),
    "a mesh": ("def f(x, mesh):\n    return x\n", "x: f32[4, 8]; mesh: data=2"),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_inferred_from(case: str) -> None:
    source, lines = CASES[case]
    assert proposed(source.lstrip("\n")) == lines


def test_sizes_are_not_called_like_parameters() -> None:
    assert proposed("def f(x, n):\n    n_, d = x.shape\n    return x * n\n") == (
        "x: f32[N, d]; n: 2; where N=4, d=8"
    )


def test_long_and_recursive_functions_are_read() -> None:
    body = "    x = jnp.exp(x) + jnp.sum(x, axis=0)\n" * 400
    assert proposed(f"def f(x):\n{body}    return f(x)\n") == "x: f32[4, 8]"
