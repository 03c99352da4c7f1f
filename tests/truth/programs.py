"""Programs drawn by lot, whose functions are called with arrays of many kinds of origin.

Each ends well when it runs, so a recorded run shows what its functions are really called with. They
have what a run without values may get wrong: loops that are cut and change their variables, lists
that grow, conditions on values, handlers, state in objects, and results that become Python numbers.
"""

from __future__ import annotations

import random
from pathlib import Path
from textwrap import indent

FUNCTIONS = 8
"""Functions of a program."""

_HEAD = """\
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass
class Config:
    width: int = {width}
    depth: int = {depth}
    batch: int = {batch}


def get_config():
    return Config()

"""

_FUNCTION = """
def {name}(x, y):
    z = {body}
    return z * jnp.float32(2)

"""

_BODIES = (
    "jnp.sin(x).sum() + jnp.cos(y).sum()",
    "x.reshape(-1).mean() + y.sum()",
    "jnp.concatenate([x.ravel(), y.ravel()]).max()",
    "jnp.outer(x.ravel(), y.ravel()).sum()",
)

_BLOCKS = (
    # loops, of which long ones are cut: what they change is unknown afterwards
    """
w = jnp.zeros({few})
for step in range({turns}):
    w = w + {name}(x, w)
""",
    """
grown = jnp.ones(1)
for step in range({turns}):
    grown = jnp.concatenate([grown, jnp.ones(1)])
{name}(grown, x)
""",
    """
for step in range({turns}):
    losses.append(jnp.sum(x))
{name}(jnp.stack(losses), x)
losses.clear()
""",
    """
for step in range({turns}):
    state['n'] += 1
{name}(jnp.ones(state['n']), x)
state['n'] = 0
""",
    """
v = jnp.ones(4)
while v.sum() > 1.0:
    v = v / 2
    {name}(v, x)
""",
    # what depends on values
    """
chosen = jnp.ones(3)
if float(jnp.sum(x)) > 0:
    chosen = jnp.ones((4, 2))
{name}(chosen, x)
""",
    """
size = int(jnp.sum(x > 0)) % 5 + 1
{name}(jnp.ones(size), x)
""",
    """
try:
    taken = np.asarray(x)[:2]
except Exception:
    taken = jnp.ones((7, 7))
{name}(taken, x)
""",
    # what does not
    """
params = {{'w': jnp.ones((config.width, 3)), 'b': jnp.zeros(3)}}
for layer, value in params.items():
    {name}(value, x)
""",
    """
def body(carry, row):
    return carry + {name}(row, carry), row.sum()
total, sums = jax.lax.scan(body, jnp.zeros(()), x)
""",
    """
rows = jax.vmap(lambda row: {name}(row, row))(x)
""",
    """
gradient = jax.grad(lambda p: {name}(p, x))(jnp.ones({few}))
""",
    """
keys = jax.random.split(key, config.depth)
layers = [jax.random.normal(k, (n + 2, config.width)) for n, k in enumerate(keys)]
for layer in layers:
    {name}(layer, y)
""",
    """
table = np.linspace(0, 1, config.batch * 6).reshape(6, -1).astype(np.float32)
{name}(table[table[:, 0] > 0.3], jnp.asarray(table))
""",
    """
applied = functools.partial({name}, x)
applied(jnp.ones((2, 3), jnp.int32))
""",
)
"""Statements that call a function: `few` is a small size, `turns` a number of iterations."""


def program(seed: int) -> str:
    """Return the text of a program."""
    rng = random.Random(seed)
    sizes = {name: rng.randint(2, 9) for name in ("width", "batch")}
    parts = [_HEAD.format(**sizes, depth=rng.randint(2, 4))]
    body = "config = get_config()\nkey = jax.random.key(0)\nlosses = []\nstate = {'n': 0}\n"
    body += "x = jnp.ones((config.batch, config.width))\ny = np.arange(config.depth)"
    for number in range(FUNCTIONS):
        name = f"f{number}"
        decorator = rng.choice(("", "", "\n@jax.jit"))
        parts.append(decorator + _FUNCTION.format(name=name, body=rng.choice(_BODIES)))
        numbers = {"few": rng.randint(2, 6), "turns": rng.choice((3, 70, 200))}
        body += rng.choice(_BLOCKS).format(name=name, **numbers)
    parts.append(f"\ndef main():\n{indent(body, '    ')}\n")
    parts.append('\nif __name__ == "__main__":\n    main()\n')
    return "".join(parts)


def written(folder: Path, count: int) -> list[Path]:
    """Write programs, each into a folder of its own, and return their paths."""
    paths = [folder / f"program{seed}" / "train.py" for seed in range(count)]
    for seed, path in enumerate(paths):
        path.parent.mkdir()
        path.write_text(program(seed))
    return paths
