"""The longest turn of the event loop by document: large and hostile ones are opened, edited and
asked about.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.perf.editor import BenchError, Editor
from tools.perf.measures import Figure, Goal

WATCHED = [sys.executable, "-m", "tools.perf.watched_server"]
PATIENCE = 30.0
"""Seconds that the server may take to answer about another file; when it takes longer, its turn
counts as this.
"""
ANSWERED = 5.0
"""Seconds that answers about the document itself are waited for: here it does not matter what they
are.
"""

HEAD = "import jax\nimport jax.numpy as jnp\n\n"
EXAMPLE = '    """Do it.\n\n    Example inputs:\n        x: f32[3]\n    """\n'
SMALL = HEAD + f"def small(x):\n{EXAMPLE}    return jnp.sin(x)\n"


def _step(number: int) -> str:
    return f'''def step{number}(params, grads, rate):
    """Take a step.

    Example inputs:
        params: f32[128, 64]
        grads: f32[128, 64]
        rate: f32[]
    """
    mean = jnp.mean(grads, axis=0)
    scaled = grads / (jnp.sqrt(mean ** 2) + 1e-8)
    return params - rate * scaled

'''


def _helper(number: int) -> str:
    return f'''def helper{number}(x, y=2.0, *, axis=0):
    """Return something of x."""
    a = jnp.sin(x) * y + jnp.cos(x[..., None]).sum(axis=axis)
    if y > 1:
        a = a @ jnp.ones((3, {number % 7 + 1})) + (x if y else -x)
    return {{"a": a, "b": [a, x, y], "n": {number}}}

'''


def _documented(body: str) -> str:
    return f'{HEAD}def f(x):\n    """Do it.\n\n{body}\n    """\n    return jnp.sin(x)\n'


def _many(one: Callable[[int], str], count: int) -> str:
    return HEAD + "".join(map(one, range(count)))


ITEM = "    Example inputs:\n        x: f32[3]\n"
DOCUMENTS: dict[str, Callable[[], str]] = {
    "5,000 lines": lambda: _many(_helper, 700) + _step(0),
    "50,000 lines": lambda: _many(_helper, 7000) + _step(0),
    "1,000 functions with example inputs": lambda: _many(_step, 1000),
    "10,000 functions with example inputs": lambda: _many(_step, 10_000),
    "function of 10,000 lines": lambda: (
        f"{HEAD}def f(x):\n{EXAMPLE}"
        + "    x = jnp.sin(x) * 2.0 + x[0]\n" * 10_000
        + "    return x\n"
    ),
    "function of 1,000 lines": lambda: (
        f"{HEAD}def f(x):\n{EXAMPLE}"
        + "    x = jnp.sin(x) * 2.0 + x[0]\n" * 1_000
        + "    return x\n"
    ),
    "docstring of 2 MB in one line": lambda: _documented("words and words " * 130_000),
    "docstring of 100,000 lines": lambda: _documented("    a b\n" * 100_000 + ITEM),
    "docstring of 100,000 example inputs": lambda: _documented(
        ITEM + "        x: f32[3]\n" * 99_999
    ),
    "docstring of 30,000 doctests": lambda: _documented("    >>> f(jnp.ones(3))\n" * 30_000),
    "example input of 1 MB": lambda: _documented(ITEM + f"        y: [{'1, ' * 300_000}]"),
    "500,000 brackets in an example input": lambda: _documented(
        ITEM + f"        y: {'(' * 500_000}"
    ),
    "line of 10 MB": lambda: f"x = {'a + ' * 2_500_000}a\ny = 1\n",
    "comment of 10 MB": lambda: f"# {'x' * 10_000_000}\nx = 1\n",
    "string of 20 MB": lambda: f"x = '{'s' * 20_000_000}'\n",
    "list of 1,000,000 numbers": lambda: f"x = [{'1, ' * 1_000_000}]\n",
    "list of 30,000 numbers": lambda: f"x = [{'1, ' * 30_000}]\n",
    "100,000 statements in one line": lambda: "x = 1; " * 100_000,
    "100,000 assignments": lambda: "".join(f"x{n} = {n}\n" for n in range(100_000)),
    "5,000 statements, one after another": lambda: (
        HEAD + "x0 = 1\n" + "".join(f"x{n + 1} = x{n} + 1\n" for n in range(5_000)) + _step(0)
    ),
    "5,000 values of one name": lambda: (
        HEAD + "x = 1\n" + "".join(f"x = x + {n}\n" for n in range(5_000)) + _step(0)
    ),
    "expression nested 5,000 deep": lambda: f"x = {'(' * 5_000}{')' * 5_000}\ny = 1\n",
    "1,000,000 NULs": lambda: "\0" * 1_000_000,
    "500,000 lines of a NUL": lambda: "\0\n" * 500_000,
    "1,000,000 lone surrogates": lambda: f"x = '{chr(0xD800) * 1_000_000}'\n",
    "100,000 lines that end with CR": lambda: "x = 1\r" * 100_000,
    "100,000 opened strings": lambda: '"""\n' * 100_001,
    "100,000 opened brackets": lambda: "(\n" * 100_000,
    "100,000 decorators": lambda: "@a\n" * 100_000,
    "50,000 broken functions": lambda: "def f(:\n" * 50_000,
    "50,000 backslashes": lambda: "x = 1 \\\n" * 50_000,
}


def by_document(root: Path, runs: int) -> list[Figure]:
    """One figure for each document, and one for 200 files that are opened at once."""
    figures = []
    for name, text in DOCUMENTS.items():
        print(f"  {name} …", file=sys.stderr, flush=True)
        figures.append(_figure(name, _longest(root, [text()])))
    figures.append(_figure("200 files at once", _longest(root, [_many(_step, 20)] * 200)))
    figures.append(_figure("project of 500 files", _longest(_project(root), [_LIBRARY])))
    return figures


_LIBRARY = f"{HEAD}def layer(x):\n    return jnp.tanh(x)\n"


def _project(root: Path) -> Path:
    """Return the folder of a project whose files import one another, and the opened one."""
    folder = root / "project"
    folder.mkdir(exist_ok=True)
    (folder / "pyproject.toml").touch()
    (folder / "file0.py").write_text(_LIBRARY, encoding="utf-8")
    for number in range(500):
        before = f"from module{number - 1} import helper0\n" if number % 10 else "import file0\n"
        text = f"{before}{_many(_helper, 40)}if __name__ == '__main__':\n    helper0(jnp.ones(3))\n"
        (folder / f"module{number}.py").write_text(text, encoding="utf-8")
    return folder


def _figure(name: str, longest: float) -> Figure:
    return Figure(f"longest turn: {name}", "ms", [longest], goals=[Goal(50)])


def _longest(root: Path, texts: list[str]) -> float:
    log = root / "turns.txt"
    log.unlink(missing_ok=True)
    try:
        with Editor(root, [*WATCHED, str(log)], patience=PATIENCE) as editor:
            editor.initialize()
            editor.open("small.py", SMALL)
            editor.hover("small.py", "small")
            started = len(_lines(log))  # starts are not about documents
            _use(editor, texts)
            turns = [line.partition(" ") for line in _lines(log)[started:]]
    except BenchError:
        print("    no answer", file=sys.stderr)
        return PATIENCE * 1000
    longest, _, where = max(turns, key=lambda turn: float(turn[0]), default=("0", "", ""))
    print(f"    {longest} ms in {where}", file=sys.stderr, flush=True)
    return float(longest)


def _lines(log: Path) -> list[str]:
    return log.read_text(encoding="utf-8").splitlines()


def _use(editor: Editor, texts: list[str]) -> None:
    for number, text in enumerate(texts):
        editor.open(f"file{number}.py", text)
    _ask(editor, f"file{len(texts) - 1}.py", texts[-1])
    editor.hover("small.py", "small")
    text = texts[0]
    for at, typed in ((len(text) // 2, " "), (len(text), "\nz = 1\n"), (0, '"""')):
        editor.insert("file0.py", at, typed)
        _ask(editor, "file0.py", text)
        editor.hover("small.py", "small")


def _ask(editor: Editor, name: str, text: str) -> None:
    document = {"uri": editor.uri(name)}
    end = {"line": 40, "character": 0}
    everywhere = {"start": {"line": 0, "character": 0}, "end": end}
    asked: list[tuple[str, dict[str, Any]]] = [
        ("textDocument/hover", {"position": {"line": 3, "character": 5}}),
        ("textDocument/inlayHint", {"range": everywhere}),
        ("textDocument/diagnostic", {}),
        ("textDocument/codeLens", {}),
        ("textDocument/codeAction", {"range": everywhere, "context": {"diagnostics": []}}),
    ]
    numbers = [editor.send(method, {"textDocument": document, **more}) for method, more in asked]
    editor.wait(numbers, ANSWERED)
