"""Functions that run inside of Haiku's transforms or NumPyro's handlers are shown as they run there."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from jaxsight.session import Session
from jaxsight.source.text import Position

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import haiku as hk\nimport jax\nimport jax.numpy as jnp\n\nkey = jax.random.PRNGKey(0)\n"
DENSE = """
class Dense(hk.Module):
    def __init__(self, size, name=None):
        super().__init__(name=name)
        self.size = size

    def __call__(self, x):
        w = hk.get_parameter("w", [x.shape[-1], self.size], init=jnp.ones)
        return jnp.tanh(x @ w)

    def twice(self, x):
        return self(x) * 2
"""

PROGRAMS = {
    # The name whose hover says something.
    "transform": (
        (
            "def f(x):\n    return hk.Linear(5)(x)\n\n\nnet = hk.transform(f)\n"
            "params = net.init(key, jnp.ones((2, 3)))\n"
        ),
        "def f",
        "-> f32[2,5]",
    ),
    "parameters are inputs": (
        (
            "def f(x):\n    return hk.Linear(5)(x)\n\n\nnet = hk.transform(f)\n"
            "params = net.init(key, jnp.ones((2, 3)))\n"
        ),
        "def f",
        "'w': f32[3,5]",
    ),
    "without a key": (
        (
            "def f(x):\n    return hk.nets.MLP([4, 6])(x)\n\n\n"
            "net = hk.without_apply_rng(hk.transform(f))\n"
            "@jax.jit\ndef loss(params, x):\n    return jnp.mean(net.apply(params, x) ** 2)\n\n\n"
            "print(loss(net.init(key, jnp.ones((2, 3))), jnp.ones((2, 3))))\n"
        ),
        "def f",
        "-> f32[2,6]",
    ),
    "a key": (
        (
            "def f(x):\n    return hk.dropout(hk.next_rng_key(), 0.5, hk.Linear(4)(x))\n\n\n"
            "net = hk.transform(f)\nparams = net.init(key, jnp.ones((2, 3)))\n"
            "y = net.apply(params, key, jnp.ones((2, 3)))\n"
        ),
        "def f",
        "rng: u32[2]",
    ),
    "state": (
        (
            "def f(x):\n    n = hk.get_state('n', [], init=jnp.zeros)\n"
            "    hk.set_state('n', n + 1)\n    return x * n\n\n\n"
            "net = hk.transform_with_state(f)\nparams, state = net.init(key, jnp.ones(3))\n"
        ),
        "def f",
        "-> (f32[3], {'~': {'n': f32[]}})",
    ),
    "a method": (
        (
            f"{DENSE}\n\ndef f(x):\n    return Dense(4)(x)\n\n\n"
            "params = hk.transform(f).init(key, jnp.ones((2, 3)))\n"
        ),
        "def __call__",
        "-> f32[2,4]",
    ),
    "another method": (
        (
            f"{DENSE}\n\ndef f(x):\n    return Dense(4).twice(x)\n\n\n"
            "params = hk.transform(f).init(key, jnp.ones((2, 3)))\n"
        ),
        "def twice",
        "-> f32[2,4]",
    ),
    "a decorator": (
        (
            "@hk.transform\ndef f(x):\n    return hk.Linear(5)(x)\n\n\n"
            "params = f.init(key, jnp.ones((2, 3)))\n"
        ),
        "def f",
        "-> f32[2,5]",
    ),
    "a batch": (
        (
            "def f(x, is_training):\n"
            "    return hk.BatchNorm(True, True, 0.9)(x, is_training)\n\n\n"
            "net = hk.transform_with_state(f)\n"
            "params, state = net.init(key, jnp.ones((2, 3)), is_training=True)\n"
        ),
        "def f",
        "'counter': i32[],",
    ),
    "a recurrent core": (
        (
            "def f(xs):\n    core = hk.LSTM(4)\n"
            "    return hk.dynamic_unroll(core, xs, core.initial_state(2))[0]\n\n\n"
            "params = hk.transform(f).init(key, jnp.ones((5, 2, 3)))\n"
        ),
        "def f",
        "-> f32[5,2,4]",
    ),
    "scan": (
        (
            "def step(c, x):\n    return hk.Linear(3)(c) + x, jnp.sum(x)\n\n\n"
            "def f(xs):\n    if hk.running_init():\n        return step(jnp.zeros(3), xs[0])\n"
            "    return hk.scan(step, jnp.zeros(3), xs)\n\n\n"
            "params = hk.transform(f).init(key, jnp.ones((5, 3)))\n"
        ),
        "def step",
        "-> (f32[3], f32[])",
    ),
    "several functions": (
        (
            "def encode(x):\n    return hk.Linear(2)(x)\n\n\n"
            "def f():\n    return encode, (encode,)\n\n\n"
            "net = hk.multi_transform(f)\nparams = net.init(key, jnp.ones((4, 3)))\n"
        ),
        "def encode",
        "-> f32[4,2]",
    ),
    "a program": (
        (
            "def f(x):\n    return hk.Linear(5)(x)\n\n\n"
            "def main():\n    net = hk.transform(f)\n    params = net.init(key, jnp.ones((2, 3)))\n\n\n"
            'if __name__ == "__main__":\n    main()\n'
        ),
        "def f",
        "-> f32[2,5]",
    ),
    "written inputs": (
        (
            'def f(x):\n    """\n    Example inputs:\n        x: f32[7, 3]\n    """\n'
            "    return hk.Linear(5)(x)\n"
        ),
        "def f",
        "-> f32[7,5]",
    ),
    "a written module": (
        DENSE.replace(
            "        w = hk",
            '        """\n        Example inputs:\n            self = Dense(4)\n'
            '            x: f32[7, 3]\n        """\n        w = hk',
        ),
        "def __call__",
        "-> f32[7,4]",
    ),
}


NUMPYRO = {
    "a model": (
        (
            "def model(x, y=None):\n    w = numpyro.sample('w', dist.Normal(jnp.zeros(3), 1).to_event(1))\n"
            "    with numpyro.plate('data', x.shape[0]):\n"
            "        return numpyro.sample('y', dist.Normal(x @ w, 0.1), obs=y)\n\n\n"
            "mcmc = MCMC(NUTS(model), num_warmup=2, num_samples=2, progress_bar=False)\n"
            "mcmc.run(key, jnp.ones((5, 3)), jnp.ones(5))\n"
        ),
        "def model",
        "rng_key: u32[2]",
    ),
    "a guide": (
        (
            "def guide(x):\n    loc = numpyro.param('loc', jnp.zeros(4))\n"
            "    return numpyro.sample('z', dist.Normal(loc, 1).to_event(1))\n\n\n"
            "numpyro.handlers.seed(guide, key)(jnp.ones(2))\n"
        ),
        "def guide",
        "-> f32[4]",
    ),
    "written inputs": (
        (
            'def model(x):\n    """\n    Example inputs:\n        x: f32[7, 3]\n    """\n'
            "    return numpyro.sample('y', dist.Normal(x, 0.1))\n"
        ),
        "def model",
        "-> f32[7,3]",
    ),
    "a driver": (
        (
            "def model(x):\n    return numpyro.sample('y', dist.Normal(x, 0.1))\n\n\n"
            "def infer(x):\n    mcmc = MCMC(NUTS(model), num_warmup=2, num_samples=2)\n"
            "    mcmc.run(key, x)\n    return mcmc.get_samples()\n\n\n"
            'def main():\n    infer(jnp.ones(3))\n\n\nif __name__ == "__main__":\n    main()\n'
        ),
        "def model",
        "-> f32[3]",
    ),
}
PYRO = "import jax\nimport jax.numpy as jnp\nimport numpyro\nimport numpyro.distributions as dist\n"
PYRO += "from numpyro.infer import MCMC, NUTS\n\nkey = jax.random.PRNGKey(0)\n"


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        pytest.param(f"{head}\n\n{program}", place, said, id=name)
        for head, programs in ((HEAD, PROGRAMS), (PYRO, NUMPYRO))
        for name, (program, place, said) in programs.items()
    ],
)
async def test_a_function_is_shown_as_it_runs_inside(
    text: str, place: str, said: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    path = str(root / f"program_{zlib.crc32(text.encode())}.py")
    own.open(path, text)
    await own.background.settle(path, patience=240)
    lines = text.split("\n")
    line = next(number for number, content in enumerate(lines) if place in content)
    column = lines[line].index(place) + 4
    hover = await own.hover(path, Position(line, column))
    findings = (await own.report(path)).reported
    own.close(path)
    assert hover is not None
    assert said in hover.markdown, hover.markdown
    assert findings == []


WITHOUT_KEY = (
    'import numpyro\n\n\ndef f(x):\n    """\n    Example inputs:\n        x: f32[3]\n    """\n'
)
WITHOUT_KEY += "    return x + jax.random.normal({}, (3,))\n"


async def test_a_key_is_an_input_only_while_it_is_needed(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "key.py")
    shown = []
    for key in ("numpyro.prng_key()", "jax.random.key(0)"):
        text = f"import jax\n{WITHOUT_KEY.format(key)}"
        own.change(path, text) if shown else own.open(path, text)
        await own.background.settle(path, patience=240)
        hover = await own.hover(path, Position(text.split("\n").index("def f(x):"), 4))
        assert hover is not None
        shown.append("rng_key" in hover.markdown)
    own.close(path)
    assert shown == [True, False]


FLAGS = '''\
from absl import flags
import jax.numpy as jnp

SIZE = flags.DEFINE_integer("size", 5, "Its size.")
flags.DEFINE_integer("more", 2, "More of it.")
FLAGS = flags.FLAGS


def f(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.outer(x, jnp.ones(SIZE.value + FLAGS.more))
'''


async def test_flags_have_their_defaults(project: tuple[Session, Path]) -> None:
    own, root = project
    path = str(root / "flags.py")
    own.open(path, FLAGS)
    await own.background.settle(path, patience=240)
    hover = await own.hover(path, Position(8, 4))
    own.close(path)
    assert hover is not None
    assert "-> f32[3,7]" in hover.markdown
