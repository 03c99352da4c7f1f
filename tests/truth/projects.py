"""Random projects: after any sequence of edits, saves, closes and questions, in all of their files,
the answers are those of a fresh process with the same texts.

The modules of a project change objects of one another: registries, configurations, lists, classes,
caches, re-exported names. Every text may be in the editor, on disk, or both and different.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import random
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.truth import edits, oracle
from tests.truth.measure import (
    Given,
    Judged,
    Verdict,
    given,
    request,
    scratch,
    session,
    verdict,
    write,
)

PER_PROJECT = 40
"""Answers that are compared in one project before the next one is drawn."""

MAIN, SHARED = "main.py", "cfg.py"
_FILES = {"pkg": "pkg/__init__.py", "pkg.core": "pkg/core.py"}

DATA = "data.txt"

_SHARED = """\
import contextvars
import functools
import itertools
import sys

import jax.numpy as jnp

LEVEL = 3
REG = {}
PARTS = [1.0, 2.0]
OPTIONS = {"a": 2.0}
HOOKS = []


class C:
    k = 2


class Box:
    def __init__(self, value):
        self.value = value


class Base:
    known = []

    def __init_subclass__(cls):
        Base.known.append(cls)


BOX = Box(4.0)
COUNTER = itertools.count(1)
VAR = contextvars.ContextVar("VAR", default=3.0)
_MEMO = {}


def register(function):
    HOOKS.append(function)
    return function


def memo(key):
    if key not in _MEMO:
        _MEMO[key] = LEVEL * len(key) + len(PARTS)
    return _MEMO[key]


@functools.cache
def cached(number):
    return number * C.k + len(REG)


@functools.singledispatch
def dispatch(value):
    return 1.0


def total():
    return sum(PARTS) + len(HOOKS)
"""

_IMPORTS = (
    "import cfg",
    "import cfg as c",
    "import sys",
    "import importlib",
    "import functools",
    "import os",
    "from cfg import BOX, HOOKS, OPTIONS, PARTS, REG, C, cached, memo, register, total",
    "from cfg import COUNTER, VAR, Base, dispatch",
)
"""All that the statements below may name; a module has each of them with some probability, so that
a statement may fail."""

_CHANGES = (
    'REG["b"] = {n}.0',
    'REG["{m}"] = {n}.0',
    'REG.setdefault("b", {n}.0)',
    "REG.clear()",
    "C.k = {n}",
    "C.extra = {n}.0",
    "PARTS.append({n}.0)",
    "PARTS += [{n}.0]",
    "PARTS[:] = [{n}.0]",
    "PARTS[0] = {n}.0",
    'OPTIONS["z"] = {n}.0',
    "OPTIONS.update(a={n}.0)",
    'cfg.OPTIONS["z"] = {n}.0',
    "cfg.LATE = {n}.0",
    "c.LEVEL = {n}",
    'setattr(cfg, "LATE", {n}.0)',
    "cfg.total = lambda: {n}.0",
    "cfg.memo = functools.cache(lambda key: {n}.0)",
    "BOX.value = {n}.0",
    "BOX.extra = {n}.0",
    "cfg.BOX = cfg.Box({n}.0)",
    'memo("{m}")',
    "cached({n})",
    "cached.cache_clear()",
    'sys.modules["cfg"].OPTIONS.update(z={n}.0)',
    'importlib.import_module("cfg").PARTS.append({n}.0)',
    "@register\ndef hook(x):\n    return x * {n}.0",
    "@register\nclass Hook:\n    size = {n}.0",
    "class Sub(Base):\n    size = {n}.0",
    "@dispatch.register\ndef dispatched(value: float):\n    return {n}.0",
    "next(COUNTER)",
    "VAR.set({n}.0)",
    "jnp.EXTRA = {n}.0",
    'os.environ["EXTRA"] = "{n}"',
    'jax.config.update("jax_enable_x64", True)',
    'DATA = float(open("data.txt").read())\nREG["data"] = DATA',
    "for part in range({n}):\n    PARTS.append(part)",
    'if "b" in REG:\n    C.k = {n}',
    "try:\n    LIMIT = cfg.LATE\nexcept AttributeError:\n    cfg.LATE = LIMIT = {n}.0",
)

_READS = (
    'REG.get("b", 1.0)',
    "len(REG)",
    "C.k",
    'getattr(C, "extra", 7.0)',
    "sum(PARTS)",
    "len(PARTS)",
    "len(HOOKS)",
    "total()",
    "cfg.total()",
    "cfg.LEVEL",
    'getattr(cfg, "LATE", 9.0)',
    'OPTIONS.get("z", 1.0)',
    'OPTIONS["a"]',
    "BOX.value",
    "cfg.BOX.value",
    'getattr(BOX, "extra", 6.0)',
    'memo("{m}")',
    "cfg.memo('{m}')",
    "cached({n})",
    "sum(getattr(h, 'size', 1.0) for h in HOOKS)",
    "len(Base.known)",
    "sum(sub.size for sub in Base.__subclasses__())",
    "dispatch(2.0)",
    "float(next(COUNTER))",
    "VAR.get()",
    "getattr(jnp, 'EXTRA', 5.0)",
    "float(os.environ.get('EXTRA', 4))",
    "jnp.arange(3)",
    "REG.get('data', 3.0)",
)

_SECTION = '''\
    """
    Example inputs:
        x: f32[3]
    """
'''


@dataclass(slots=True)
class Project:
    """The texts on disk, and those in the editor, by the names of the files."""

    disk: dict[str, str]
    editor: dict[str, str] = field(default_factory=dict)

    @property
    def texts(self) -> dict[str, str]:
        """The texts that an import sees."""
        return {**self.disk, **self.editor}


def drawn(choose: random.Random, helpers: int = 0) -> Project:
    """A project of three to six files, in which each helper may import those before it."""
    names = ["lib", "ops", "pkg.core", "pkg"][: helpers or choose.randrange(1, 5)]
    if "pkg.core" in names and "pkg" not in names:
        names.append("pkg")
    files = {SHARED: _SHARED, DATA: "2.5"}
    for number, name in enumerate(names):
        files[_FILES.get(name, f"{name}.py")] = _helper(name, names[:number], choose)
    files[MAIN] = _helper("main", names, choose)
    return Project(files)


def _helper(name: str, others: Sequence[str], choose: random.Random) -> str:
    """The text of a module that imports others, changes what they have, and reads it."""
    own = name.rpartition(".")[2]
    lines = [
        "import jax",
        "import jax.numpy as jnp",
        *(i for i in _IMPORTS if choose.random() < 0.98),
    ]
    if choose.random() < 0.1:
        lines.append("from cfg import *")
    terms = ["x * SCALE"]
    body: list[str] = []
    for module in others:
        if name != "main" and choose.random() < 0.5:
            continue
        other = module.rpartition(".")[2]
        match choose.randrange(7):
            case 0:
                lines.append(f"import {module}")
                terms.append(f"{module}.f_{other}(x)")
            case 1:
                lines.append(f"from {module} import f_{other}")
                terms.append(f"f_{other}(x)")
            case 2:
                lines.append(f"from {module} import SCALE as SCALE_{other}")
                terms.append(f"SCALE_{other}")
            case 3:
                lines.append(f"from {module} import *")
                terms.append(f"f_{other}(x)")
            case 4:
                body.append(f"    from {module} import f_{other}\n")
                terms.append(f"f_{other}(x)")
            case 5:
                body.append("    import main\n")
                terms.append("main.SCALE")
            case _:
                lines.append(f"import {module} as other_{other}")
                lines.append(f"f_{other} = other_{other}.f_{other}")
                terms.append(f"f_{other}(x) + other_{other}.READ")
    statements = [changed(choose) for _ in range(choose.randrange(4))]
    statements += [f"SCALE = 5.0 * {choose.randrange(2, 9)}", f"READ = {_read(choose)}"]
    choose.shuffle(statements)
    if choose.random() < 0.05:
        lines, statements = [*statements[:1], *lines], statements[1:]
    terms += [_read(choose) for _ in range(choose.randrange(3))]
    if choose.random() < 0.5:
        terms.append("READ")
    asked = name == "main" or choose.random() < 0.6
    function = "".join(
        [
            f"def f_{own}(x):\n",
            _SECTION if asked else "",
            *body,
            f"    h = {' + '.join(terms)}\n",
            "    return jnp.sin(h)\n",
        ]
    )
    return "\n".join([*lines, *statements, "", "", function])


def changed(choose: random.Random) -> str:
    """A statement that changes an object of another module."""
    return choose.choice(_CHANGES).format(n=choose.randrange(2, 9), m="ab"[choose.randrange(2) :])


def _read(choose: random.Random) -> str:
    return choose.choice(_READS).format(n=choose.randrange(2, 9), m="ab"[choose.randrange(2) :])


class Typist:
    """Somebody who edits a project's files, opens, saves and closes them, and asks meanwhile."""

    def __init__(
        self,
        project: Project,
        folder: Path,
        opened: Session,
        choose: random.Random,
        *,
        redefines: bool = False,
    ) -> None:
        """`redefines`: texts are unfinished at times, and definitions renamed, moved, repeated."""
        self.project = project
        self.redefines = redefines
        self.folder = folder
        self.opened = opened
        self.choose = choose
        self.history: list[str] = []
        self._before: dict[str, list[str]] = {name: [text] for name, text in project.disk.items()}
        self._asking: list[asyncio.Task[object]] = []

    async def act(self) -> None:
        """Do one thing that changes texts, or asks without waiting."""
        actions: list[tuple[int, Callable[[], Awaitable[None]]]] = [
            (12, self.edit),
            (3, self.save),
            (2, self.close),
            (3, self.open),
            (4, self.change_on_disk),
            (6, self.ask),
            (1, self.restart),
        ]
        (action,) = self.choose.choices([a for _, a in actions], [weight for weight, _ in actions])
        await action()

    async def edit(self) -> None:
        """Change the editor's text of an open file."""
        if self.project.editor:
            name = self.choose.choice(sorted(self.project.editor))
            text = self._edited(name, self.project.editor[name])
            self.project.editor[name] = text
            self.opened.change(str(self.folder / name), text)
            self.history.append(f"edit {name}")

    async def save(self) -> None:
        """Write the editor's text of an open file to disk."""
        if self.project.editor:
            name = self.choose.choice(sorted(self.project.editor))
            self._write(name, self.project.editor[name])
            self.opened.saved(str(self.folder / name))
            if self.choose.random() < 0.5:
                self.opened.files_changed([str(self.folder / name)])
            self.history.append(f"save {name}")

    async def open(self) -> None:
        """Open a closed file."""
        if closed := sorted(self.project.disk.keys() - self.project.editor - {DATA}):
            self.show(self.choose.choice(closed))

    def show(self, name: str) -> None:
        """Open a file with the text on disk."""
        text = self.project.editor[name] = self.project.disk[name]
        self.opened.open(str(self.folder / name), text)
        self.history.append(f"open {name}")

    async def close(self) -> None:
        """Close a file without saving it."""
        if len(self.project.editor) > 1:
            name = self.choose.choice(sorted(self.project.editor))
            del self.project.editor[name]
            self.opened.close(str(self.folder / name))
            self.history.append(f"close {name}")

    async def change_on_disk(self) -> None:
        """Change a file on disk, whether it is open or not, as `git checkout` does."""
        name = self.choose.choice(sorted(self.project.disk))
        self._write(name, self._edited(name, self.project.disk[name]))
        if self.choose.random() < 0.7:
            self.opened.files_changed([str(self.folder / name)])
        self.history.append(f"change {name} on disk")

    async def ask(self) -> None:
        """Ask for a hover or hints, and let the next change overtake the answer."""
        if self.project.editor:
            name = self.choose.choice(sorted(self.project.editor))
            path, lines = str(self.folder / name), self.project.editor[name].split("\n")
            line = next((at for at, text in enumerate(lines) if text.startswith("def f_")), 0)
            asked: Awaitable[object] = (
                self.opened.hover(path, Position(line, 5))
                if self.choose.random() < 0.5
                else self.opened.hints(path)
            )
            self._asking.append(asyncio.ensure_future(asked))
            await asyncio.sleep(self.choose.choice([0, 0, 0.01, 0.1]))
            self.history.append(f"ask about {name}")

    async def restart(self) -> None:
        """Restart the tracers."""
        await self.opened.restart()
        self.history.append("restart")

    async def settle(self) -> None:
        """Wait until nothing that was asked is open."""
        with contextlib.suppress(Exception):
            await asyncio.gather(*self._asking, return_exceptions=True)
        self._asking.clear()

    def _write(self, name: str, text: str) -> None:
        self.project.disk[name] = text
        write(self.folder, {name: text})

    def _edited(self, name: str, text: str) -> str:
        """A text after one edit: of a number, of a change of another module, or back again."""
        if name == DATA:
            return f"{self.choose.randrange(1, 9)}.5"
        before = self._before[name]
        if self.redefines and (new := self._redefined(text, before)) is not None:
            before.append(new)
            return new
        match self.choose.randrange(10):
            case 0 | 1 | 2 | 3:
                new = edits.changed_number(text, self.choose)
            case 4 | 5:
                pieces = edits.pieces(text)
                at = self.choose.randrange(1, len(pieces) + 1) if pieces else 0
                piece = changed(self.choose) + "\n"
                new = "".join([*pieces[:at], piece, *pieces[at:]])
            case 6 | 7:
                new = self.choose.choice(before)
            case _:
                new = edits.edited(text, self.choose)
        before.append(new)
        return new

    def _redefined(self, text: str, before: list[str]) -> str | None:
        """A text that is unfinished or has another definition; an unfinished one is mended."""
        if not _parses(text):
            whole = [each for each in before if _parses(each)]
            return self.choose.choice([whole[-1], self.choose.choice(whole), text + "\n"])
        match self.choose.randrange(5):
            case 0:
                return edits.broken(text, self.choose)
            case 1 | 2:
                return edits.redefined(text, self.choose)
            case _:
                return None


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


async def measured(count: int, seed: int, python: str, jobs: int) -> list[Judged]:
    """Judge about `count` answers in random projects."""
    numbers = list(range((count + PER_PROJECT - 1) // PER_PROJECT))[::-1]
    judged: list[Judged] = []

    async def work() -> None:
        while numbers:
            judged.extend(await _of_project(seed, numbers.pop(), min(count, PER_PROJECT), python))
            wrong = [each.case for each in judged if each.verdict is Verdict.WRONG]
            print(f"{len(judged)} answers, silently wrong: {wrong}", file=sys.stderr)

    await asyncio.gather(*(work() for _ in range(jobs)))
    return judged


async def _of_project(seed: int, number: int, count: int, python: str) -> list[Judged]:
    """Judge the answers in one project."""
    choose = random.Random(f"{seed} {number}")
    compared: list[tuple[str, str, Given, str]] = []
    requests: list[oracle.Request] = []
    with scratch() as folder:
        project = drawn(choose)
        root = folder / "project"
        write(root, project.disk)
        async with session(root, python) as opened:
            typist = Typist(project, root, opened, choose)
            for name in sorted(project.disk.keys() - {DATA}):
                if name == MAIN or choose.random() < 0.6:
                    typist.show(name)
            for step in range(count):
                for _ in range(choose.randrange(1, 4)):
                    await typist.act()
                name = choose.choice(sorted(project.editor))
                texts = project.texts
                where = folder / str(step)
                write(where, texts)
                asked = request(where, name, texts[name], list(texts.values()))
                if not asked.functions:
                    continue
                function = choose.choice(asked.functions)
                answer = await given(opened, root / name, function[0], True)
                typist.history.append(f"answer {name}:{function[0]}")
                requests.append(
                    oracle.Request(asked.folder, asked.module, (function,), asked.fresh)
                )
                history = "; ".join(typist.history[-14:])
                described = "\n".join(
                    [history, *(f"# {each}\n{text}" for each, text in sorted(texts.items()))]
                )
                compared.append((f"{number}/{name} step {step}", function[0], answer, described))
            await typist.settle()
        truths = await asyncio.to_thread(oracle.truths, requests, python, 1)
    return [
        Judged(
            "projects",
            case,
            0,
            function,
            verdict(answer, truth[function]),
            answer,
            truth[function],
            text,
        )
        for (case, function, answer, text), truth in zip(compared, truths, strict=True)
    ]
