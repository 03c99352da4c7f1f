"""*Extract repro* with the real engine and real processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from lsprotocol import types

from tests.e2e.editor import PATIENCE, VSCODE, Editor, opened, span

KIND = "refactor.rewrite.jaxsight.repro"

FAILING = '''\
import jax
import jax.numpy as jnp

jax.config.update("jax_debug_nans", True)


def root(x):
    return jnp.sqrt(x)


def loss(x, scale=2.0):
    """
    Example inputs:
        x: f32[40]
    """
    y = jnp.sin(x) + 1.0
    return jnp.sum(root(y - 3.0) * scale)


def fine(x):
    """
    Example inputs:
        x: f32[40]
    """
    return x + 1


def wrong(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.concatenate([x, jnp.ones((2, 2))])
'''

ENDLESS = '''\
import os
import time
from pathlib import Path

import jax.numpy as jnp


def endless(x):
    """
    Example inputs:
        x: f32[3]
    """
    started = Path(__file__).with_name("started")
    if isinstance(x, jnp.ndarray) and not hasattr(x, "aval_property"):
        started.write_text(str(os.getpid()))
        time.sleep(1000)
    return x
'''


async def actions(editor: Editor, uri: str, range: types.Range) -> list[types.CodeAction]:
    return await editor.code_actions(uri, range, only=KIND)


async def test_a_failing_function_becomes_a_document_and_is_reduced(tmp_path: Path) -> None:
    async with opened(VSCODE, tmp_path) as editor:
        uri = (tmp_path / "model.py").as_uri()
        editor.open(uri, FAILING)
        (action,) = await actions(editor, uri, span(10, 4, 8))
        assert action.title == "Extract repro of loss"
        shown = await editor.execute(action.command)
        assert shown is not None, editor.messages
        print(shown["text"], shown["summary"])
        linked = await editor.linked_content(shown["uri"])
        print(linked["links"])
        reduced = await editor.execute("jaxsight.reduceRepro", uri, "loss")
        print(reduced)
