"""What is shown of programs' functions, to compare it with real runs of the programs."""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.drivers.real_runs import Call

CORPUS = Path(__file__).parents[1] / "corpora" / "drivers"

_ARRAY = re.compile(r"\b(?:bool|[fiuc]\d+|bf16|key<\w+>)\[[\d,]*\]")
_BLOCK = re.compile(r"```\w*\n(.*?)```", re.DOTALL)
_COUNT = re.compile(r"· (\d+) arrays? ·")


def programs(kind: str) -> dict[str, str]:
    """Return the programs of a file of the corpus, by name: what is above them is in each."""
    head, *parts = re.split(
        r"^### (.*)\n", (CORPUS / f"{kind}.txt").read_text(), flags=re.MULTILINE
    )
    bodies = zip(parts[::2], parts[1::2], strict=True)
    return {name: f"{head.strip()}\n\n\n{body.strip()}\n" for name, body in bodies}


def cases(*kinds: str) -> list[tuple[str, str]]:
    """Return the programs of several files, as their kinds and names."""
    return [(kind, name) for kind in kinds for name in programs(kind)]


@functools.cache
def written(kind: str, folder: Path) -> dict[str, Path]:
    """Write the programs of a kind, and return their files by name."""
    files = {}
    for name, text in programs(kind).items():
        files[name] = folder / f"{kind}_{re.sub(r'[^a-z]+', '_', name)}.py"
        files[name].write_text(text)
    return files


@functools.cache
def really_called(kind: str, folder: Path) -> dict[str, dict[str, list[Call]]]:
    """Return the calls in real runs of a kind's programs, by file and function."""
    script = Path(__file__).with_name("real_runs.py")
    command = [sys.executable, str(script), *map(str, written(kind, folder).values())]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    calls: dict[str, dict[str, list[Call]]] = json.loads(done.stdout)
    return calls


def functions(tree: ast.AST, around: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a program by their qualified names."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef():
                yield around + node.name, node
                yield from functions(node, f"{around}{node.name}.<locals>.")
            case ast.ClassDef():
                yield from functions(node, f"{around}{node.name}.")
            case _:
                yield from functions(node, around)


def parameters(function: ast.FunctionDef) -> Iterator[ast.arg]:
    """Yield the parameters of a function, without `self`."""
    args = function.args
    every = (*args.posonlyargs, *args.args, args.vararg, *args.kwonlyargs, args.kwarg)
    return (each for each in every if each is not None and each.arg != "self")


async def shown(session: Session, path: str, function: ast.FunctionDef) -> dict[str, str]:
    """Return what hovers say that the parameters of a function are, empty of those without."""
    found = {}
    for each in parameters(function):
        hover = await session.hover(path, Position(each.lineno - 1, each.col_offset))
        blocks = _BLOCK.findall(hover.markdown) if hover is not None else ()
        found[each.arg] = "\n".join(blocks)
    return found


def agrees(said: dict[str, str], call: Call) -> bool:
    """Return whether what is shown of each parameter is what a real call has."""
    return all(_is_same(text, *call[name]) for name, text in said.items())


def _is_same(text: str, own: list[str], captured: list[str]) -> bool:
    types = Counter(_ARRAY.findall(text))
    if "…" not in text and " × " not in text:
        return types in (Counter(own), Counter(own + captured))
    # Long trees are cut, and equal rows of tables stand for several: their number is said.
    count = _COUNT.search(text)
    is_all = count is None or int(count[1]) in (len(own), len(own) + len(captured))
    return is_all and bool(types) and types <= Counter(own + captured)
