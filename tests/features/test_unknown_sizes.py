"""Sizes that only missing data would tell have names, a mark and their cause; others are numbers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jaxsight.rules.finding import Severity
from jaxsight.session import Session
from jaxsight.source.text import Position

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

HEAD = "import os\nimport jax\nimport jax.numpy as jnp\nimport numpy as np\n\n"
TEXT = "text = open('input.txt').read()\n"
DATA = "data = np.load('data.npz')['x']\n"
F = "\n\ndef f(x, n=None):\n    return jnp.sum(jnp.sin(x))\n\n\n"
EMBEDDING = "class Embedding:\n    def __init__(self, vocab, dim):\n        self.w = jnp.ones((vocab, dim))\n"

SIZED = {
    # What `f` is called with.
    "the vocabulary": (
        f"{TEXT}chars = sorted(list(set(text)))\n{F}f(jnp.ones((len(chars), 64)))",
        "x: f32[?V,64]",
    ),
    "by a variable": (
        f"{TEXT}vocab = len(set(text))\n{F}f(jnp.zeros((16, vocab), jnp.bfloat16))",
        "x: bf16[16,?V]",
    ),
    "one more": (f"{TEXT}vocab = len(set(text)) + 1\n{F}f(jnp.ones((vocab, 2)))", "x: f32[?V+1,2]"),
    "a part": (
        f"{DATA}n = int(0.9 * len(data))\n{F}f(jnp.zeros(n), len(data) - n)",
        "x: f32[9*?V/10], n: ?V/10",
    ),
    "of a shape": (
        f"{DATA}{F}w = jax.random.normal(jax.random.key(0), (data.shape[-1], 8))\nf(w)",
        "x: f32[?V,8]",
    ),
    "of two": (
        f"{DATA}{TEXT}{F}f(jnp.ones((len(data), len(text))))",
        "x: f32[?V,?U]",
    ),
    "the same twice": (
        f"{DATA}{F}f(jnp.ones((data.shape[0], data.shape[0])))",
        "x: f32[?V,?V]",
    ),
    "a length and a shape": (
        f"{DATA}{F}f(jnp.ones((len(data), data.shape[0])))",
        "x: f32[?V,?V]",
    ),
    "of a dictionary": (
        f"{TEXT}stoi = {{c: i for i, c in enumerate(set(text))}}\n{F}f(jnp.ones((3, len(stoi))))",
        "x: f32[3,?V]",
    ),
    "of a list": (
        f"{TEXT}words = [w for w in text.split() if w]\n{F}f(jnp.ones((len(words), 3)))",
        "x: f32[?V,3]",
    ),
    "from the environment": (
        f"size = int(os.environ['HIDDEN_SIZE'])\n{F}f(jnp.ones((4, size)))",
        "x: f32[4,?V]",
    ),
    "in an object": (
        f"{TEXT}{EMBEDDING}\n\nchars = set(text)\nmodel = Embedding(len(chars), 32)\n{F}f(model.w.T)",
        "x: f32[32,?V]",
    ),
    "divided by heads": (
        f"{DATA}d = data.shape[1]\n{F}f(jnp.ones((2, d)).reshape(2, 12, d // 12))",
        "x: f32[2,12,?V/12]",
    ),
    "divided by another number": (
        f"{DATA}{F}f(jnp.ones((2, len(data) // 11)))",
        "x: f32[2,?V//11]",
    ),
    "an assertion about it": (
        f"{DATA}n = len(data)\nassert n % 26 == 0\n{F}f(jnp.ones(n))",
        "x: f32[?V]",
    ),
    "a reshape": (f"{DATA}{F}f(jnp.ones(len(data)).reshape(13, -1))", "x: f32[13,?V/13]"),
    "rows of patches": (
        f"{DATA}{F}f(jnp.ones(data.shape[1]).reshape(-1, 49))",
        "x: f32[?V/49,49]",
    ),
    "batches of a hundred": (f"{DATA}{F}f(jnp.ones(len(data) // 100))", "x: f32[?V//100]"),
    "a divisor that no number has": (
        f"{DATA}{F}f(jnp.ones((2, len(data) // 997)))",
        "x: f32[2,?U]",
    ),
    "two that are equal": (
        f"{DATA}n = len(data)\n{F}f((jnp.ones((4, data.shape[1])) @ jnp.ones((n, n))))",
        "x: f32[4,?V]",
    ),
    "in a jit": (f"{DATA}{F}jax.jit(f)(jnp.ones((len(data), 8)))", "x: f32[?V,8]"),
    "under vmap": (f"{DATA}{F}jax.vmap(f)(jnp.ones((5, len(data))))", "x: f32[?V]"),
    "an axis less": (f"{DATA}{F}jax.vmap(f)(jnp.ones((len(data), 5)))", "x: f32[5]"),
    "of what a loop fills": (
        f"{TEXT}xs = []\nfor word in text.split():\n    xs.append(1.0)\n{F}f(jnp.ones((len(xs), 8)))",
        "x: f32[?V,8]",
    ),
    "of what a loop in a function fills": (
        f"{TEXT}{F}def main():\n    xs = []\n    for word in text.split():\n"
        + "        xs.append(1.0)\n    f(jnp.ones((len(xs), 8)))\n\n\nmain()",
        "x: f32[?V,8]",
    ),
    "of rows in loops": (
        f"{DATA}rows = jnp.asarray(data.reshape(-1, 3), jnp.float32)\n{F}for i, row in enumerate(rows):"
        + "\n    print(row)\nlist(rows)\nf([row for row in rows][0], len(rows))\nfor row in rows:\n    f(row, len(rows))",
        "x: f32[3], n: ?V",
    ),
    "of a repeated list": (
        f"{DATA}seen = [False] * len(data)\n{F}f(jnp.ones((len(seen), 2)), len([0, 1] * len(data)))",
        "x: f32[?V,2], n: 2*?V",
    ),
    "kept by a loop": (
        f"{DATA}{F}w = jnp.ones(data.shape[1])\nfor i, row in enumerate(data):\n"
        + "    print(row)\n    w = jnp.sin(w)\nf(jnp.stack([w, w]))",
        "x: f32[2,?V]",
    ),
    "in main": (
        f"{DATA}{F}def main():\n    n = len(data)\n    f(jnp.ones((n, 2)))\n\n\n"
        + 'if __name__ == "__main__":\n    main()',
        "x: f32[?V,2]",
    ),
    "rows of pictures": (
        f"{DATA}{F}f(jnp.ones(data.shape[1]).reshape(-1, 784))",
        "x: f32[?V/784,784]",
    ),
}
UNSIZED = {
    # Nothing is known of these, and no number stands for them.
    "as many turns": f"{DATA}{F}f(jnp.stack([jnp.ones(3) for _ in range(len(data))]))",
    "a list of unknown length": f"{TEXT}{F}f(jnp.array([float(len(w)) for w in text.split()]))",
    "values": f"{DATA}{F}f(jnp.array(data))",
    "a size that is to be a known one": f"{DATA}{F}f(jnp.ones((4, 512)) @ jnp.ones((len(data), 2)))",
    "two that are equal and are not": (
        f"{DATA}{F}f(jnp.ones((2, len(data))) @ jnp.ones((data.shape[1], 3)) @ jnp.ones((9, 1)))"
    ),
    "the memory of numpy": f"{DATA}{F}f(np.ones((len(data), 50_000)))",
}


FITTING = {
    # Programs that run if the data has other sizes than the numbers here.
    "a product": "jnp.ones((4, 3)) @ jnp.ones((len(data), 2))",
    "a product of two": "jnp.ones((4, data.shape[1])) @ jnp.ones((len(data), 2))",
    "a sum": "jnp.ones((len(data), 3)) + jnp.ones((8, 3))",
    "a reshape": "jnp.ones((len(data), 6)).reshape(12, 3)",
    "a reshape of a jit": "jax.jit(lambda x: x.reshape(12, 3))(jnp.ones((len(data), 6)))",
    "a sum in a gradient": "jax.grad(lambda w: jnp.sum(w * jnp.ones(7)))(jnp.ones(len(data)))",
    "a split": "jnp.split(jnp.ones((len(data), 3)), 11)",
    "a concatenation": "jnp.concatenate([jnp.ones((2, len(data))), jnp.ones((2, 5))], 0)",
    "a contraction": "jnp.einsum('ij,jk->ik', jnp.ones((2, len(data))), jnp.ones((5, 2)))",
    "a batch": "jax.vmap(jnp.add)(jnp.ones((len(data), 2)), jnp.ones((9, 2)))",
    "a scan": "jax.lax.scan(lambda c, x: (c + x, c), jnp.ones(3), jnp.ones((4, len(data))))",
    "a branch": "jax.lax.cond(True, lambda: jnp.ones(3), lambda: jnp.ones(len(data)))",
    "an unpacking": "a, b, c = jnp.ones((len(data), 2))",
    "an index": "[1, 2, 3][len(data)]",
    "an assertion": "assert len(data) == 60000",
    "a check of its own": "if len(data) != 60000:\n    raise ValueError('truncated')",
    "a division": "1 / (len(data) - 68060160)",
    "a key": "{10: 'a'}[data.shape[1]]",
    "a sized function": "f(jnp.ones((len(data), 3)) @ jnp.ones((data.shape[1], 3)))",
    "a sized function in a jit": "jax.jit(g)(jnp.ones((len(data), 3)), jnp.ones((4, 3)))",
}


async def hover_of(own: Session, path: Path, text: str) -> str:
    """Return the hover of `f`, without the escapes of Markdown."""
    own.open(str(path), text)
    await own.background.settle(str(path), patience=240)
    line = text[: text.index("def f")].count("\n")
    hover = await own.hover(str(path), Position(line, 4))
    own.close(str(path))
    return " ".join(hover.markdown.split()) if hover is not None else ""


@pytest.mark.parametrize("name", SIZED)
async def test_unknown_sizes_have_names(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    program, types = SIZED[name]
    hover = await hover_of(own, root / f"sized_{'_'.join(name.split())}.py", f"{HEAD}{program}\n")
    assert types in hover.replace("( ", "(").replace(", )", ")"), hover
    if "?" in types:
        assert re.search(r"not known: \?[VU] of `", hover.replace("\\", "")), hover


@pytest.mark.parametrize("name", UNSIZED)
async def test_what_has_no_size_stays_unknown(name: str, project: tuple[Session, Path]) -> None:
    own, root = project
    path = root / f"unsized_{'_'.join(name.split())}.py"
    hover = await hover_of(own, path, f"{HEAD}{UNSIZED[name]}\n")
    assert "?V" not in hover, hover
    assert "f(x: f32[" not in hover.replace("( ", "("), hover


@pytest.mark.parametrize("name", FITTING)
async def test_sizes_that_do_not_fit_are_no_errors(
    name: str, project: tuple[Session, Path]
) -> None:
    own, root = project
    path = str(root / f"fitting_{'_'.join(name.split())}.py")
    own.open(path, f"{HEAD}{DATA}{F}def g(x, y):\n    return x @ y\n\n\n{FITTING[name]}\n")
    await own.background.settle(path, patience=240)
    found = (await own.report(path)).reported
    own.close(path)
    assert [each.message for each in found if each.severity is Severity.ERROR] == []


async def test_hints_name_the_size_and_no_memory(project: tuple[Session, Path]) -> None:
    own, root = project
    path = root / "hints.py"
    program = (
        f"{HEAD}{TEXT}vocab = len(set(text))\n\n\n@jax.jit\ndef f(w):\n    y = jnp.sin(w) * 2\n"
        + "    z = jnp.sum(y, 0)\n    return z\n\n\nf(jnp.ones((vocab, 4)))\n"
    )
    own.open(str(path), program)
    await own.background.settle(str(path), patience=240)
    hints = {hint.range.start.line: hint.label for hint in await own.hints(str(path), wait=True)}
    own.close(str(path))
    lines = program.split("\n")
    at = {name: lines.index(f"    {name}") for name in ("y = jnp.sin(w) * 2", "z = jnp.sum(y, 0)")}
    assert hints[at["y = jnp.sin(w) * 2"]] == ": f32[?V,4]"
    assert hints[at["z = jnp.sum(y, 0)"]] == ": f32[4]"
    figures = " ".join(hints.values())
    assert "GiB" not in figures
    assert "MiB" not in figures
