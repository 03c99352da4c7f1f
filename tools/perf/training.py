"""How long it takes from opening a script until hints are in the step that trains, against the time
in which plain Python gets to the end of that step for the first time.

The scripts are ten models that are trained in the same way; nothing in them tells of inputs but
their own calls.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from tools.perf.editor import ENVIRONMENT, PATIENCE, BenchError, Editor, milliseconds
from tools.perf.measures import Figure, Goal

_SETTINGS = {"target": "cpu"}
_DONE = "one step is done"
_SCRIPT = '''\
"""Train {name}."""
import os

import jax
import jax.numpy as jnp
import numpy as np

STEPS = int(os.environ.get("BENCH_STEPS", "200"))
rng = np.random.default_rng(0)


def normal(*shape):
    return jnp.asarray(0.1 * rng.standard_normal(shape), jnp.float32)


{model}


def loss(params, x, y):
    return jnp.mean((apply(params, x) - y) ** 2)


@jax.jit
def train_step(params, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)
    return params, value


def main():
    params = init()
    for step in range(STEPS):
        x, y = normal({x}), normal({y})
        params, value = train_step(params, x, y)
        value.block_until_ready()
        if step == 0:
            print("{done}", flush=True)


if __name__ == "__main__":
    main()
'''
_MODELS = {
    "a line": ("{'w': normal(8)}", "x @ p['w']", "64, 8", "64"),
    "a classifier": (
        "{'w': normal(784, 10), 'b': normal(10)}",
        "jax.nn.log_softmax(x @ p['w'] + p['b'])",
        "128, 784",
        "128, 10",
    ),
    "two layers": (
        "[normal(32, 64), normal(64, 4)]",
        "jnp.tanh(x @ p[0]) @ p[1]",
        "16, 32",
        "16, 4",
    ),
    "an autoencoder": (
        "(normal(100, 8), normal(8, 100))",
        "jax.nn.relu(x @ p[0]) @ p[1]",
        "32, 100",
        "32, 100",
    ),
    "a convolution": (
        "normal(3, 3, 1, 8)",
        (
            "jax.lax.conv_general_dilated(\n"
            "        x, p, (2, 2), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))"
        ),
        "8, 28, 28, 1",
        "8, 14, 14, 8",
    ),
    "a recurrent network": (
        "{'h': normal(16, 16), 'x': normal(4, 16)}",
        (
            "jax.lax.scan(\n"
            "        lambda h, r: (jnp.tanh(h @ p['h'] + r @ p['x']), h), jnp.zeros((8, 16)), x)[1]"
        ),
        "20, 8, 4",
        "20, 8, 16",
    ),
    "attention": (
        "{n: normal(32, 32) for n in 'qkv'}",
        "jax.nn.softmax((x @ p['q']) @ (x @ p['k']).swapaxes(1, 2)) @ (x @ p['v'])",
        "4, 16, 32",
        "4, 16, 32",
    ),
    "an embedding": (
        "{'table': normal(50, 12), 'out': normal(12, 50)}",
        "p['table'][jnp.argmax(x, -1)] @ p['out']",
        "32, 50",
        "32, 50",
    ),
    "a normalized layer": (
        "{'w': normal(24, 24), 'scale': normal(24)}",
        "p['scale'] * jax.nn.standardize(x @ p['w'])",
        "64, 24",
        "64, 24",
    ),
    "an oscillator": (
        "{'k': normal(), 'c': normal()}",
        (
            "jax.lax.fori_loop(\n"
            "        0, 50, lambda i, s: s + 0.01 * jnp.stack([s[1], -p['k'] * s[0] - p['c'] * s[1]]), x)"
        ),
        "2, 100",
        "2, 100",
    ),
}
"""Parameters, what the model computes, and the shapes of its data."""


def _script(name: str) -> str:
    params, apply, x, y = _MODELS[name]
    model = f"def init():\n    return {params}\n\n\ndef apply(p, x):\n    return {apply}"
    return _SCRIPT.format(name=name, model=model, x=x, y=y, done=_DONE)


def first_hints(root: Path, runs: int) -> list[Figure]:
    """From the spawn of the server to a type in the step that trains; all scripts once."""
    ours: list[float] = []
    plain: list[float] = []
    for number, name in enumerate([*_MODELS][:runs]):
        text, file = _script(name), f"script_{number}.py"
        (root / file).write_text(text, encoding="utf-8")
        begin = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, file],
            cwd=root,
            stdout=subprocess.PIPE,
            env={**ENVIRONMENT, "BENCH_STEPS": "1", "JAX_PLATFORMS": "cpu"},
        ) as process:
            assert process.stdout is not None
            if _DONE not in process.stdout.readline().decode():
                raise BenchError(f"{name} is not trained")
            plain.append(milliseconds(begin))
        begin = time.perf_counter()
        with Editor(root) as editor:
            editor.initialize(settings=_SETTINGS)
            editor.open(file, text)
            _await_hints(editor, file, text)
            ours.append(milliseconds(begin))
    return [
        Figure(
            "open → types in the step that trains",
            "ms",
            ours,
            plain,
            "python until the step",
            [Goal(factor=2.0)],
        )
    ]


def _await_hints(editor: Editor, file: str, text: str) -> None:
    """Ask for hints until there is a type in the step."""
    lines = text.split("\n")
    first = lines.index("def train_step(params, x, y):")
    where = {
        "start": {"line": first + 1, "character": 0},
        "end": {"line": first + 4, "character": 0},
    }
    asked = {"textDocument": {"uri": editor.uri(file)}, "range": where}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        hints = editor.request("textDocument/inlayHint", asked) or []
        if any("f32[" in str(hint["label"]) for hint in hints):
            return
        time.sleep(0.1)
    raise BenchError("there are no hints in the step")
