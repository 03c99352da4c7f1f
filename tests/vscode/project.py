"""Folders as people have them: modules whose functions have example inputs, an interpreter that was
chosen in the editor, a notebook.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

FUSION = '''\
import jax.numpy as jnp


def kvec_mesh(n):
    return jnp.stack((jnp.arange(n), jnp.arange(n)), axis=-1)


def f_sum_jax(x):
    """A sum over an axis of two ends a kernel.

    Example inputs:
        x: f32[131072, 2]
    """
    kvec = kvec_mesh(len(x))
    return x * 2 + jnp.sum(kvec * x, axis=1, keepdims=True)


def f_sum_explicit(x):
    """The same sum, written out: it fuses with the rest.

    Example inputs:
        x: f32[131072, 2]
    """
    kvec = kvec_mesh(len(x))
    dot = kvec[..., 0] * x[..., 0] + kvec[..., 1] * x[..., 1]
    return x * 2 + dot[:, None]
'''

TRAINING = '''\
import functools

import jax
import jax.numpy as jnp


@functools.partial(
    jax.jit,
    donate_argnums=(0, 1, 2),
)
def train_step(params, m, v, tokens):
    """One step of training.

    Example inputs:
        params = PARAMS
        m = PARAMS
        v = PARAMS
        tokens: i32[4, 33]
    """
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens)
    params, m, v = adam(params, grads, m, v)
    return params, m, v, loss


def layer_norm(x, scale):
    x = x - jnp.mean(x, axis=-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * scale


def attention(p, x):
    q, k, v = (x @ p[name] for name in ("q", "k", "v"))
    scores = jnp.einsum("bld,bmd->blm", q, k) / 8
    mask = jnp.tril(jnp.ones(scores.shape[1:], bool))
    return jax.nn.softmax(jnp.where(mask, scores, -1e9)) @ v @ p["out"]


def mlp(p, x):
    return jax.nn.gelu(x @ p["up"]) @ p["down"]


def block(p, x):
    x = x + attention(p, layer_norm(x, p["scale"]))
    return x + mlp(p, layer_norm(x, p["scale"]))


def loss_fn(params, tokens):
    x = params["embed"][tokens[:, :-1]]
    for p in params["blocks"]:
        x = block(p, x)
    logits = x @ params["embed"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -jnp.mean(picked)


def adam(params, grads, m, v):
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return params, m, v


def init(layers=LAYERS, d=64):
    sizes = {"q": (d, d), "k": (d, d), "v": (d, d), "out": (d, d), "up": (d, 4 * d)}
    sizes |= {"down": (4 * d, d), "scale": (d,)}
    block = {name: jnp.ones(size) for name, size in sizes.items()}
    return {"embed": jnp.ones((256, d)), "blocks": [block] * layers}


PARAMS = init()
'''
"""A decoder of `LAYERS` layers with its optimizer: hundreds of kernels."""

ATTENTION = '''\
import jax
import jax.numpy as jnp


def attention(q, k, v):
    """Scaled dot-product attention.

    Example inputs:
        q, k, v: f32[4, 128, 8, 64]
    Example inputs (decode):
        q: f32[4, 1, 8, 64]
    """
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def clipped(x, limit: float = 1.0):
    norm = jnp.linalg.norm(x)
    return x * jnp.minimum(1, limit / norm)


def relu(x):
    """
    Example inputs:
        x: f32[8]
    """
    if x.sum() > 0:
        return x
    return jnp.zeros_like(x)
'''

SHAPES = "[tool.jaxsight.inlayHints]\nkernels = false\nbarriers = false\ncollectives = false\n"


def make(
    folder: Path, files: Mapping[str, str], *, python: str, settings: str = "", **editor: object
) -> Path:
    """Write a folder's files, its project settings and those of the editor."""
    (folder / ".vscode").mkdir(parents=True)
    values = {
        "python.defaultInterpreterPath": python,
        "jaxsight.proposeInputs": False,
        **editor,
    }
    (folder / ".vscode" / "settings.json").write_text(json.dumps(values), encoding="utf-8")
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def notebook(*cells: str) -> str:
    """A notebook's file with cells of code."""
    return json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": None,
                    "id": f"cell{index}",
                    "metadata": {},
                    "outputs": [],
                    "source": text.splitlines(keepends=True),
                }
                for index, text in enumerate(cells)
            ],
            "metadata": {"language_info": {"name": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )
