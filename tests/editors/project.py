"""A project as people have them: settings, a module, examples for code that is not theirs; another
with kernels.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

QUIET = "[tool.jaxsight]\npropose-inputs = false\n\n[tool.jaxsight.inlayHints]\nkernels = false\nbarriers = false\ncollectives = false\n"

SETTINGS = f"""\
[tool.jaxsight]
python = {sys.executable!r}
propose-inputs = false

[tool.jaxsight.inlayHints]
sizeNames = false
kernels = false
barriers = false
collectives = false

[tool.jaxsight.sizes]
B = 8

[tool.jaxsight.examples]
"losses:huber_loss" = "predictions, targets: f32[B, 3]"
"optax.losses._regression:huber_loss" = "predictions, targets: f32[B, 5]"
"jax._src.nn.functions:glu" = "x: f32[B, 16]"
"""

MODEL = '''\
import jax
import jax.numpy as jnp


def attention(q, k, v, *, causal=True):
    """Scaled dot-product attention.

    Example inputs:
        q, k, v: f32[4, 128, 8, 64]
    Example inputs (short):
        q, k, v: f32[1, 16, 8, 64]
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    if causal:
        mask = jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool))
        scores = jnp.where(mask, scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def clipped(x, limit: float = 1.0):
    norm = jnp.linalg.norm(x)
    return x * jnp.minimum(1, limit / norm)


def relu(x):
    """
    Example inputs:
        x: f32[B]
    """
    if x.sum() > 0:
        return x
    return jnp.zeros_like(x)
'''

KERNELS = f"""\
[tool.jaxsight]
python = {sys.executable!r}
target = "cpu"
propose-inputs = false

[tool.jaxsight.inlayHints]
shapes = false
"""

NORMALIZED = '''\
import jax.numpy as jnp


def normalized(x):
    """
    Example inputs:
        x: f32[64, 32]
    """
    total = jnp.sort(x, axis=1)
    return x / jnp.sum(total, axis=1, keepdims=True)
'''

DOUBLED = '''\
import jax.numpy as jnp


def doubled(x):
    """
    Example inputs:
        x: f32[3]
    """
    result = x * 2
    return result
'''


def planted(folder: Path) -> Path:
    """Write a folder as somebody may publish it: with an interpreter of its own, which makes a file
    when it runs. Return that file.
    """
    mark = folder.parent / "it_ran"
    python = folder / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch {shlex.quote(str(mark))}\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (folder / ".venv" / "pyvenv.cfg").touch()
    (folder / "pyproject.toml").write_text(QUIET, encoding="utf-8")
    (folder / "model.py").write_text(DOUBLED, encoding="utf-8")
    return mark
