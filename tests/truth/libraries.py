"""Functions of installed libraries, found by machine, with examples from
`[tool.jaxsight.examples]`.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import importlib
import inspect
import json
import os
import pkgutil
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxsight_source.compat.inner import equation_count
from tests.truth import oracle
from tests.truth.measure import Judged, given, scratch, session, verdict
from tests.truth.oracle import Request

LIBRARIES = [
    "jax",
    "jax._src.lax",
    "jax._src.nn",
    "jax._src.numpy",
    "jax._src.scipy",
    "optax",
    "flax",
    "equinox",
    "diffrax",
    "lineax",
    "optimistix",
    "numpyro",
    "chex",
    "haiku",
    "einops",
    "jaxopt",
    "blackjax",
    "distrax",
    "rlax",
    "dm_pix",
    "jraph",
    "mctx",
    "jaxlie",
    "tinygp",
    "e3nn_jax",
    "ott",
    "flowjax",
    "quax",
    "interpax",
    "evosax",
    "jaxkd",
    "jmp",
    "gpjax",
    "jaxns",
    "kfac_jax",
    "brax",
    "jax_md",
    "rax",
    "softjax",
    "traceax",
    "matfree",
    "paramax",
    "probdiffeq",
    "s2fft",
    "jax_cosmo",
    "augmax",
    "jaxwt",
    "signax",
    "gymnax",
    "scico",
    "tjax",
    "brainunit",
    "brainstate",
    "mujoco.mjx",
    "penzai",
    "tensorflow_probability.substrates.jax",
]
"""Packages that are looked through where they are installed."""

MODULES = 80
"""Modules of one package that are looked through, at most."""
MOST = 30
"""Functions of one package, at most."""
LEAST = 3
"""Equations that a function must have to be worth a comparison."""
PATIENCE = 240
"""Seconds to look through one package."""
SECONDS = 5
"""Seconds that one trace may take there."""

_F44 = ("f32[4, 4]", {"dtype": "float32", "shape": [4, 4]})
_F4 = ("f32[4]", {"dtype": "float32", "shape": [4]})
_F = ("f32[]", {"dtype": "float32", "shape": []})
_I4 = ("i32[4]", {"dtype": "int32", "shape": [4]})
_KEY = ("key<fry>[]", {"impl": "fry", "shape": []})
_TWO = ("2", {"source": "2"})
_HALF = ("0.5", {"source": "0.5"})
_SHAPE = ("(3, 2)", {"source": "(3, 2)"})
_TRUE = ("True", {"source": "True"})
_ZERO = ("0", {"source": "0"})
_TREE = (
    "{'w': f32[4, 4], 'b': f32[4]}",
    {"kind": "dict", "keys": ["'w'", "'b'"], "children": [_F44[1], _F4[1]]},
)
_MATRICES = ("f32[3, 4, 4]", {"dtype": "float32", "shape": [3, 4, 4]})
_IMAGE = ("f32[8, 8, 3]", {"dtype": "float32", "shape": [8, 8, 3]})
_F3 = ("f32[3]", {"dtype": "float32", "shape": [3]})

MENU = (
    (_F44, _F44),
    (_F4, _F4),
    (_F, _F),
    (_F44, _F4),
    (_F4, _F),
    (_F44, _TWO),
    (_F4, _TWO),
    (_F4, _HALF),
    (_F4, _I4),
    (_I4, _TWO),
    (_KEY, _SHAPE),
    (_KEY, _F4),
    (_F3, _F3),
    (_TREE, _TREE),
    (_MATRICES, _F44),
    (_IMAGE, _HALF),
)
"""Examples for the first argument and for the others."""

NAMED = (
    (re.compile(r"(?:.*_)?(?:key|rng)"), _KEY),
    (re.compile(r"(?:.*_)?(?:axis|dim)"), _ZERO),
    (re.compile(r"(?:.*_)?shape"), _SHAPE),
)
"""Examples for parameters whose names say what they are."""

_SKIPPED = re.compile(r"(?:^|\.)(?:tests?|testing|conftest|examples?|benchmarks?|docs?)(?:\.|$|_)")


@dataclass(frozen=True, slots=True)
class Found:
    """A function of a library with examples that it can be traced with."""

    package: str
    module: str
    file: str
    function: str
    arguments: tuple[tuple[str, str, dict[str, Any]], ...]

    @property
    def example(self) -> str:
        """The section, as `pyproject.toml` gives it."""
        return "\n".join(f"{name}: {text}" for name, text, _ in self.arguments)


def found(count: int, seed: int, python: str, jobs: int, only: str = "") -> list[Found]:
    """About `count` functions, as many of each package as there are, up to an equal share; of one
    package if `only` is given.
    """

    def one(package: str) -> list[Found]:
        command = [python, "-m", "tests.truth.libraries", package, str(min(count, MOST)), str(seed)]
        environment = {**os.environ, **oracle.SINGLE_THREADED, "PYTHONPATH": oracle.python_path()}
        try:
            done = subprocess.run(
                command,
                cwd=oracle.ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            lines = done.stdout.splitlines()
        except subprocess.TimeoutExpired as ended:
            lines = (ended.stdout or b"").decode().splitlines()
        return [read(line) for line in lines if line.startswith('{"package"')]

    with ThreadPoolExecutor(jobs) as pool:
        packages = [each for each in pool.map(one, [only] if only else LIBRARIES) if each]
    taken: list[Found] = []
    while len(taken) < count and any(packages):
        taken += [package.pop(0) for package in packages if package]
    return taken[:count]


def read(line: str) -> Found:
    """Return what one line of `look` says."""
    value = json.loads(line)
    arguments = tuple((name, text, spec) for name, text, spec in value.pop("arguments"))
    return Found(**value, arguments=arguments)


def _text(file: str) -> str:
    return Path(file).read_text(encoding="utf-8")


def save(functions: list[Found], file: Path) -> None:
    """Keep what was found, so that several versions of jaxsight can be asked about the same
    functions.
    """
    lines = [
        json.dumps({name: getattr(each, name) for name in Found.__slots__}) for each in functions
    ]
    file.write_text("".join(f"{line}\n" for line in lines))


def load(file: Path) -> list[Found]:
    """What was saved."""
    return [read(line) for line in file.read_text().splitlines()]


async def measured(functions: list[Found], python: str, jobs: int) -> list[Judged]:
    """Judge the answers about functions in their installed files."""
    # Some put fields in the order of a set of names: both processes must have the same.
    os.environ["PYTHONHASHSEED"] = "0"
    by_file: dict[tuple[str, str], list[Found]] = {}
    for each in functions:
        by_file.setdefault((each.file, each.module), []).append(each)
    texts = {file: _text(file) for file, _ in by_file}
    judged: list[Judged] = []
    with scratch() as folder:
        requests = [
            Request(
                str(folder),
                module,
                tuple((f.function, tuple((n, s) for n, _, s in f.arguments), {}) for f in members),
            )
            for (_, module), members in by_file.items()
        ]
        answers = await asyncio.to_thread(oracle.truths, requests, python, jobs)
        lines = [f'"{f.module}:{f.function}" = {json.dumps(f.example)}' for f in functions]
        examples = "\n".join(dict.fromkeys(lines))
        (folder / "pyproject.toml").write_text(f"[tool.jaxsight.examples]\n{examples}\n")
        async with session(folder, python) as opened:
            for ((file, _), members), truths in zip(by_file.items(), answers, strict=True):
                opened.open(file, texts[file])
                for each in members:
                    truth = truths[each.function]
                    if truth.error:
                        continue
                    path = Path(file)
                    answer = await given(opened, path, each.function, bool(truth.program))
                    judge = verdict(answer, truth)
                    name = f"{each.module}:{each.function}"
                    judged.append(
                        Judged(each.package, name, 0, each.function, judge, answer, truth)
                    )
                opened.close(file)
    return judged


# What follows runs in the interpreter that is measured.


def look(package: str, most: int, seed: int) -> Iterator[Found]:
    """Functions of a package that can be traced with something of the menu."""
    root = _imported(package)
    names = [package]
    if hasattr(root, "__path__"):
        walked = pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda _: None)
        names += [info.name for info in walked if not _SKIPPED.search(info.name)]
    choose = random.Random(seed)
    choose.shuffle(names)
    left = most
    seen: set[tuple[str, str]] = set()
    for name in names[:MODULES]:
        module = _imported(name)
        members = [
            (key, value)
            for key, value in sorted(vars(module).items() if module is not None else ())
            if callable(value) and not inspect.isclass(value) and not key.startswith("__")
        ]
        choose.shuffle(members)
        for key, value in members[:20]:
            where = _defined_in(package, key, value)
            if where is None or (where[0], key) in seen:
                continue
            seen.add((where[0], key))
            arguments = filled(value)
            if arguments is not None:
                yield Found(package, *where, key, arguments)
                left -= 1
                if not left:
                    return


def _defined_in(package: str, name: str, function: Any) -> tuple[str, str] | None:
    """The module of a package, and its file, whose text defines a function by its name; others only
    import it from there.
    """
    try:
        file = inspect.unwrap(function).__code__.co_filename
        module = _modules_by_file()[file]
        here = (module == package or module.startswith(f"{package}.")) and file.endswith(".py")
        same = getattr(sys.modules[module], name, None) is function
        return (module, file) if here and same and name in _definitions(file) else None
    except Exception:  # noqa: BLE001 - whatever a library's objects do when they are looked at
        return None


def _modules_by_file() -> dict[str, str]:
    modules = list(sys.modules.items())
    return {file: name for name, m in modules if (file := getattr(m, "__file__", None))}


@functools.cache
def _definitions(file: str) -> frozenset[str]:
    """The functions that a file defines at its top level."""
    todo: list[ast.AST] = [*ast.parse(_text(file)).body]
    names: set[str] = set()
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, (ast.If, ast.Try)):
            todo += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    return frozenset(names)


def _imported(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - whatever a library raises
        return None


def filled(function: Any) -> tuple[tuple[str, str, dict[str, Any]], ...] | None:
    """Return arguments of the menu that a function can be traced with, to `LEAST` equations or
    more.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    needed = [p for p in parameters if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    others = [p for p in parameters if p.default is p.empty and p not in needed]
    if not 1 <= len(needed) <= 4 or any(p.kind is p.KEYWORD_ONLY for p in others):
        return None
    for first, rest in MENU:
        chosen = [first, *([rest] * (len(needed) - 1))]
        pairs = zip(needed, chosen, strict=True)
        arguments = [(p.name, *_example(p, each)) for p, each in pairs]
        if _limited(lambda arguments=arguments: _equations(function, arguments)) >= LEAST:
            return tuple(arguments)
    return None


def _example(parameter: inspect.Parameter, otherwise: tuple[str, Any]) -> tuple[str, Any]:
    annotated = getattr(parameter.annotation, "__name__", parameter.annotation)
    if annotated == "bool":
        return _TRUE
    by_name = (each for pattern, each in NAMED if pattern.fullmatch(parameter.name))
    return next(by_name, otherwise)


def _equations(function: Any, arguments: list[tuple[str, str, dict[str, Any]]]) -> int:

    values = {name: oracle.value(spec, {}, {}) for name, _, spec in arguments}
    return equation_count(oracle.traced(function, values).jaxpr)


def _limited(work: Callable[[], int]) -> int:
    """What some work gives, or 0 where it fails or takes too long."""

    def stop(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return work()
    except BaseException:  # noqa: BLE001 - whatever a library raises
        return 0
    finally:
        signal.alarm(0)


def _look_and_print() -> None:
    kept = os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 1)
    with os.fdopen(kept, "w") as out:
        for each in look(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])):
            line = {name: getattr(each, name) for name in Found.__slots__}
            out.write(json.dumps(line) + "\n")
            out.flush()
    os._exit(0)


if __name__ == "__main__":
    _look_and_print()
