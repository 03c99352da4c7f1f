"""Programs drawn by lot, whose functions are called with arrays of many kinds of origin.

Each ends well when it runs, so a recorded run shows what its functions are really called with. They
have what a run without values may get wrong: loops that are cut and change their variables, lists
that grow, conditions on values, handlers, state in objects, and results that become Python numbers.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import indent

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


def program(seed: int) -> str:
    """Return the text of a program."""
    rng = random.Random(seed)
    names = [f"f{n}" for n in range(8)]
    sizes = {name: rng.randint(2, 9) for name in ("width", "depth", "batch")}
    sizes["depth"] = rng.randint(2, 4)
    parts = [_HEAD.format(**sizes)]
    for name in names:
        decorator = rng.choice(("", "", "\n@jax.jit"))
        parts.append(decorator + _FUNCTION.format(name=name, body=rng.choice(_BODIES)))
    blocks = [make(rng, name) for make, name in zip(_drawn(rng), names, strict=False)]
    body = "config = get_config()\nkey = jax.random.key(0)\nlosses = []\nstate = {'n': 0}\n"
    body += "x = jnp.ones((config.batch, config.width))\ny = np.arange(config.depth)\n"
    body += "\n".join(blocks)
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


def _drawn(rng: random.Random) -> Iterator[Callable[[random.Random, str], str]]:
    while True:
        yield rng.choice(_BLOCKS)


def _long_loop(rng: random.Random, name: str) -> str:
    return (
        f"w = jnp.zeros({rng.randint(2, 5)})\n"
        f"for step in range({rng.choice((3, 70, 200))}):\n"
        f"    w = w + {name}(x, w)\n"
    )


def _growing_array(rng: random.Random, name: str) -> str:
    turns = rng.choice((3, 90))
    return (
        f"grown = jnp.ones(1)\nfor step in range({turns}):\n"
        "    grown = jnp.concatenate([grown, jnp.ones(1)])\n"
        f"{name}(grown, x)\n"
    )


def _growing_list(rng: random.Random, name: str) -> str:
    turns = rng.choice((4, 100))
    return (
        f"for step in range({turns}):\n    losses.append(jnp.sum(x))\n"
        f"{name}(jnp.stack(losses), x)\nlosses.clear()\n"
    )


def _condition_on_value(rng: random.Random, name: str) -> str:
    return (
        "chosen = jnp.ones(3)\nif float(jnp.sum(x)) > 0:\n    chosen = jnp.ones((4, 2))\n"
        f"{name}(chosen, x)\n"
    )


def _number(rng: random.Random, name: str) -> str:
    return f"size = int(jnp.sum(x > 0)) % 5 + 1\n{name}(jnp.ones(size), x)\n"


def _while_loop(rng: random.Random, name: str) -> str:
    return f"v = jnp.ones(4)\nwhile v.sum() > 1.0:\n    v = v / 2\n    {name}(v, x)\n"


def _handler(rng: random.Random, name: str) -> str:
    return (
        "try:\n    taken = np.asarray(x)[:2]\nexcept Exception:\n    taken = jnp.ones((7, 7))\n"
        f"{name}(taken, x)\n"
    )


def _tree(rng: random.Random, name: str) -> str:
    return (
        "params = {'w': jnp.ones((config.width, 3)), 'b': jnp.zeros(3)}\n"
        "for layer, value in params.items():\n"
        f"    {name}(value, x)\n"
    )


def _scan(rng: random.Random, name: str) -> str:
    return (
        "def body(carry, row):\n"
        f"    return carry + {name}(row, carry), row.sum()\n"
        "total, sums = jax.lax.scan(body, jnp.zeros(()), x)\n"
    )


def _mapped(rng: random.Random, name: str) -> str:
    return f"rows = jax.vmap(lambda row: {name}(row, row))(x)\n"


def _gradient(rng: random.Random, name: str) -> str:
    return f"gradient = jax.grad(lambda p: {name}(p, x))(jnp.ones({rng.randint(2, 6)}))\n"


def _counted(rng: random.Random, name: str) -> str:
    turns = rng.choice((5, 80))
    return (
        f"for step in range({turns}):\n    state['n'] += 1\n"
        f"{name}(jnp.ones(state['n']), x)\nstate['n'] = 0\n"
    )


def _comprehension(rng: random.Random, name: str) -> str:
    return (
        "keys = jax.random.split(key, config.depth)\n"
        "layers = [jax.random.normal(k, (n + 2, config.width)) for n, k in enumerate(keys)]\n"
        f"for layer in layers:\n    {name}(layer, y)\n"
    )


def _numpy(rng: random.Random, name: str) -> str:
    return (
        "table = np.linspace(0, 1, config.batch * 6).reshape(6, -1).astype(np.float32)\n"
        f"{name}(table[table[:, 0] > 0.3], jnp.asarray(table))\n"
    )


def _partial(rng: random.Random, name: str) -> str:
    return f"applied = functools.partial({name}, x)\napplied(jnp.ones((2, 3), jnp.int32))\n"


_BLOCKS = (
    *(_long_loop, _growing_array, _growing_list, _condition_on_value, _number, _while_loop),
    *(_handler, _tree, _scan, _mapped, _gradient, _counted, _comprehension, _numpy, _partial),
)
