"""What a function's text alone suggests: ranks and relations of its parameters, and their kinds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jaxsight.examples import choice
from jaxsight.examples.proposals.inference import infer
from jaxsight.source.module import Module

IMPORTS = "import jax\nimport jax.numpy as jnp\n\n\n"


def proposed(source: str, known: Mapping[str, str] | None = None) -> str:
    """The proposed lines of the last function; they have no problems, apart from what is known.

    A last line has the parameters whose examples the text does not prove.
    """
    module = Module.parse(IMPORTS + source)
    chunk, function = [found for found in module.functions if not found[1].refused][-1]
    proposal = infer(module, chunk, function, known=known or {})
    assert proposal is not None
    found = choice.of(function, sizes={}, project=proposal.text)
    if not known:
        assert found.problems == ()
        assert len(found.sets) == 1
    unproved = [f"not told: {', '.join(sorted(proposal.unproved))}"] if proposal.unproved else []
    return "; ".join([*proposal.lines, *unproved])


CASES = {
    "einsum": (
        """
def attention(q, k, v, mask):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)
""",
        (
            "q: f32[B, H, Q, D]; k: f32[B, H, K, D]; v: f32[B, H, K, C]; mask: f32[B, H, Q, K]; "
            "where B=4, H=8, Q=16, D=32, K=64, C=24; not told: mask"
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
        "params, x, y: f32[N, D]; where N=4, D=8; not told: params, x, y",
    ),
    "conditions": (
        """
def kernel(x, y, *, axis):
    if x.ndim != 3:
        raise ValueError
    assert x.shape == y.shape
    return jnp.sum(x * y, axis=axis)
""",
        "x, y: f32[B, N, D]; axis: -1; where B=4, N=8, D=16",
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
            "params: f32[N, D]; x: f32[b, d]; key: key<fry>[]; n: 2; g: f32[N, D]; mode: 'a'; "
            "where b=16, d=32, N=4, D=8; not told: g, params"
        ),
    ),
    "random numbers and scalars": (
        """
def sample(key, logits, temperature):
    return jax.random.categorical(key, logits / temperature, axis=-1)
""",
        (
            "key: key<fry>[]; logits: f32[N, D]; temperature: f32[]; where N=4, D=8; not told: "
            "logits"
        ),
    ),
    "pytrees": (
        """
def decay(params, rate):
    return jax.tree.map(lambda p: p * rate, params)
""",
        "params: f32[N, D]; rate: f32[]; where N=4, D=8; not told: params",
    ),
    "static arguments": (
        """
@jax.jit(static_argnames=("n", "shape", "mode"))
def f(x, n, shape, mode):
    return jnp.zeros(shape) + x[:n]
""",
        "x: f32[N, D]; n, shape, mode: 2; where N=4, D=8; not told: mode, shape, x",
    ),
    "constants": (
        """
def convolve(x, mode):
    if mode not in ("same", "full"):
        raise ValueError
    return jnp.convolve(x, x, mode=mode)
""",
        "x: f32[N, D]; mode: 'same'; where N=4, D=8; not told: x",
    ),
    "self": (
        """
class Linear:
    def __init__(self, n_in, n_out, key):
        self.w = jax.random.normal(key, (n_in, n_out))

    def __call__(self, x):
        return x @ self.w
""",
        (
            "self = Linear(n_in=8, n_out=8, key=jax.random.key(0)); x: f32[N, D]; where N=4, D=8;"
            " not told: x"
        ),
    ),
    "a class with methods that are called": (
        """
class Dense(NamedTuple):
    w: Float[Array, "i o"]
    mode: Mode

    def __call__(self, x):
        return x @ self.w

class Mode(enum.Enum):
    FAST = 1

def loss(model: Dense, x):
    return model(x).sum()
""",
        (
            "model = Dense(w=jnp.ones((8, 8)), mode=Mode.FAST); x: f32[N, D]; where N=4, D=8; not"
            " told: x"
        ),
    ),
    "subclasses of an abstract class": (
        """
class AbstractSolver(ABC):
    @abstractmethod
    def step(self, x): ...

class Newton(AbstractSolver):
    def __init__(self, damping, matrix, tolerance: float): ...

class Euler(AbstractSolver):
    def step(self, x):
        return x

def solve(solver: AbstractSolver, x):
    return solver.step(x)
""",
        "solver = AbstractSolver(); x: f32[N, D]; where N=4, D=8; not told: solver, x",
    ),
    "types of the module": (
        """
Axes = Union[int, Sequence[int]]
Objective = Callable[[Array, float], float]
Y = TypeVar("Y")

def f(x, axes: Axes, objective: Objective, y: Y):
    return jnp.sum(x, axes) + objective(y, 2.0)
""",
        (
            "x: f32[N, D]; axes: -1; objective, y: f32[N, D]; where N=4, D=8; not told: "
            "objective, x, y"
        ),
    ),
    "tuples": (
        """
def loss(params, batch):
    inputs, mask, key = batch
    kept = jax.random.bernoulli(key, 0.5, inputs.shape)
    return jnp.sum(jnp.where(mask & kept, inputs @ params["w"], 0.0))
""",
        "params: {'w': f32[N, D]}; batch: f32[N, D]; where N=4, D=8; not told: batch, params",
    ),
    "ranks that differ": (
        """
def cross_entropy(logits, labels):
    assert logits.ndim == labels.ndim + 1
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], axis=-1)
    return -picked.mean()
""",
        "logits: f32[N, D]; labels: i32[N]; where N=4, D=8",
    ),
    "siblings of `key`, and arguments of JAX's functions": (
        """
def attention(query, key, value, dimension_numbers, precision):
    scores = jax.lax.dot_general(query, key, dimension_numbers, precision=precision)
    return scores @ value
""",
        (
            "query, key, value, dimension_numbers, precision: f32[N, D]; where N=4, D=8; not "
            "told: dimension_numbers, key, precision, query"
        ),
    ),
    "branches for parameters that are `None`": (
        """
def scaled(x, y, scale=None):
    if scale is None:
        B, L = x.shape
        return x @ y
    return x * scale
""",
        "x: f32[B, L]; y: f32[L, D]; where B=4, L=8, D=16",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_inputs_are_inferred_from(case: str) -> None:
    source, lines = CASES[case]
    assert proposed(source.lstrip("\n")) == lines


def test_sizes_are_not_called_like_parameters() -> None:
    assert proposed("def f(x, n):\n    n_, d = x.shape\n    return x * n\n") == (
        "x, n: f32[N, d]; where N=4, d=8; not told: n"
    )


def test_long_and_recursive_functions_are_read() -> None:
    body = "    x = jnp.exp(x) + jnp.sum(x, axis=0)\n" * 400
    assert proposed(f"def f(x):\n{body}    return f(x)\n") == (
        "x: f32[N, D]; where N=4, D=8; not told: x"
    )
