"""A function's answer is made of the texts of all modules that it imports, as they are in the editor,
whatever is edited, asked and restarted in between.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Refresh
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = (4, 6, 8, 2)
PATIENCE = 60
"""Seconds after which what does not come counts as missing."""

SHARED = """\
REG = {}
PARTS = [1.0]
class C:
    k = 1.0
class Box:
    value = 1.0
BOX = Box()
HOOKS = []
def register(function):
    HOOKS.append(function)
    return function
_MEMO = {}
def memo(number):
    return _MEMO.setdefault("first", number)
"""

WAYS = {
    "nothing": "",
    "registry": 'from cfg import REG\nREG["b"] = {n}.0\n',
    "class": "from cfg import C\nC.k = {n}.0\n",
    "list": "from cfg import PARTS\nPARTS.append({n}.0)\n",
    "instance": "from cfg import BOX\nBOX.value = {n}.0\n",
    "module": "import cfg\ncfg.LATE = {n}.0\n",
    "decorator": "from cfg import register\n@register\ndef hook(x):\n    return x * {n}.0\n",
    "cache": "from cfg import memo\nFIRST = memo({n}.0)\n",
    "by name": 'import sys\nimport cfg\nsys.modules["cfg"].REG.update(b={n}.0)\n',
    "in a loop": "from cfg import PARTS\nfor part in range({n}):\n    PARTS.append(part)\n",
}

LIB = """\
import jax.numpy as jnp
{way}SCALE = 5.0 * {n}
def dense(x):
    \"\"\"Example inputs:
        x: f32[3]
    \"\"\"
    return jnp.sin(x * SCALE)
"""

MAIN = """\
import cfg
from lib import dense
def loss(x):
    \"\"\"Example inputs:
        x: f32[3]
    \"\"\"
    h = dense(x) + sum(cfg.PARTS) + cfg.C.k + cfg.BOX.value + len(cfg.HOOKS)
    return h + cfg.REG.get("b", 0.0) + getattr(cfg, "LATE", 0.0) + cfg.memo(0.0)
"""

ON_THE_DEFINITION = Position(2, 5)


def lib(way: str, number: int) -> str:
    return LIB.format(way=WAYS[way].format(n=number), n=number)


def numbers(markdown: str) -> list[str]:
    """The numbers of the jaxpr in a hover."""
    return re.findall(r"\b(\d+\.\d+):f32\[\]", markdown)


def expected(way: str, number: int) -> list[str]:
    """The numbers of the jaxpr of `loss`, in the order of its terms."""
    n = float(number)
    parts = {"list": 1.0 + n, "in a loop": 1.0 + sum(range(number))}
    values = [
        5.0 * n,
        parts.get(way, 1.0),
        n if way == "class" else 1.0,
        n if way == "instance" else 1.0,
        float(way == "decorator"),
        n if way in ("registry", "by name") else 0.0,
        n if way == "module" else 0.0,
        n if way == "cache" else 0.0,
    ]
    return [str(value) for value in values]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def importing(
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[tuple[Session, Path]]:
    """A session on a folder; the module's tests share its processes."""
    root = tmp_path_factory.mktemp("importing").resolve()
    session = Session()
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session, root
    await session.aclose()


class Project:
    """Three files, two of them open: `lib.py` is edited, and `main.py` imports it."""

    def __init__(self, session: Session, root: Path, way: str) -> None:
        self.session, self.way = session, way
        self.main, self.lib = str(root / "main.py"), str(root / "lib.py")
        (root / "cfg.py").write_text(SHARED)
        Path(self.main).write_text(MAIN)
        Path(self.lib).write_text(lib(way, 3))
        session.open(self.main, MAIN)
        session.open(self.lib, lib(way, 3))

    def edit(self, number: int) -> None:
        self.session.change(self.lib, lib(self.way, number))

    async def loss(self) -> list[str]:
        """The numbers of the first hover that is not marked as stale."""
        async with asyncio.timeout(PATIENCE):
            while True:
                hover = await self.session.hover(self.main, ON_THE_DEFINITION)
                assert hover is not None
                if not hover.stale:
                    assert numbers(hover.markdown), hover.markdown
                    return numbers(hover.markdown)

    def close(self) -> None:
        self.session.close(self.main)
        self.session.close(self.lib)


@pytest.fixture(params=WAYS)
def project(importing: tuple[Session, Path], request: pytest.FixtureRequest) -> Project:
    return Project(*importing, request.param)


@pytest.mark.slow
async def test_an_importer_sees_each_edit_of_what_it_imports(project: Project) -> None:
    assert await project.loss() == expected(project.way, 3)
    for number in NUMBERS:
        project.edit(number)
        # Both files are asked about, and the helper's own question must not take its text away.
        own, seen = await asyncio.gather(
            project.session.hover(project.lib, Position(2 + WAYS[project.way].count("\n"), 5)),
            project.loss(),
        )
        assert own is not None
        assert seen == expected(project.way, number)
    await project.session.restart()
    assert await project.loss() == expected(project.way, NUMBERS[-1])
    project.close()


async def test_what_is_shown_without_a_mark_is_of_the_current_texts(
    importing: tuple[Session, Path],
) -> None:
    project = Project(*importing, "nothing")
    assert await project.loss() == expected("nothing", 3)
    for number in NUMBERS:
        project.edit(number)
        for wait in (False, True):
            hints = await project.session.hints(project.main, wait=wait)
            if wait:
                assert hints
                assert not any(hint.stale for hint in hints)
        hover = await project.session.hover(project.main, ON_THE_DEFINITION)
        assert hover is not None
        assert hover.stale or numbers(hover.markdown) == expected("nothing", number)
    project.close()


async def test_an_edit_during_a_trace_of_an_importer_is_in_its_answer(
    importing: tuple[Session, Path],
) -> None:
    project = Project(*importing, "registry")
    for number in NUMBERS:
        asked = asyncio.create_task(project.loss())
        await asyncio.sleep(0)  # the question has been sent
        project.edit(number)
        await asked
        assert await project.loss() == expected("registry", number)
    project.close()


async def test_a_helper_that_ends_the_process_is_tried_again_after_an_edit(
    importing: tuple[Session, Path],
) -> None:
    project = Project(*importing, "nothing")
    project.session.change(project.lib, "import os\nos._exit(3)\n")
    died = await project.session.hover(project.main, ON_THE_DEFINITION)
    assert died is None or numbers(died.markdown) == []
    project.edit(4)
    assert await project.loss() == expected("nothing", 4)
    project.close()


@pytest.mark.parametrize(
    "broken",
    [
        "return (",
        "def f(:\n",
        "# coding: none\n",
        "SCALE = '\0'\n",
        f"SCALE = {'-' * 2000}1\n",
        f"SCALE = {'(' * 300}1{')' * 300}\n",
        "import absent\n",
        "from main import loss\n",
        "1 / 0\n",
        "raise SystemExit\n",
    ],
    ids=lambda text: repr(text[:20]),
)
async def test_a_text_that_cannot_be_imported_leaves_nothing_behind(
    importing: tuple[Session, Path], broken: str
) -> None:
    project = Project(*importing, "nothing")
    assert await project.loss() == expected("nothing", 3)
    for number in (4, 6):
        for text in (broken, f"{lib('nothing', number)}\n{broken}"):
            project.session.change(project.lib, text)
            await project.session.hover(project.main, ON_THE_DEFINITION)
        for again in (number, number + 1):
            project.edit(again)
            assert await project.loss() == expected("nothing", again)
    project.close()


async def test_an_error_that_was_caught_ends_when_the_helper_is_mended(
    importing: tuple[Session, Path],
) -> None:
    session, root = importing
    for name, text in (("broken.py", "1 / 0\n"), ("between.py", "import broken\n")):
        (root / name).write_text(text)
        session.open(str(root / name), text)
    main = "try:\n    import between\n    SCALE = between.broken.SCALE\nexcept ArithmeticError:\n"
    main += "    SCALE = 2.0\n" + 'def f(x):\n    """Example inputs:\n        x: f32[3]\n    """\n'
    path = str(root / "catching.py")
    session.open(path, f"{main}    return x * SCALE\n")
    for text, scale in (("1 / 0\n", "2.0"), ("SCALE = 7.0\n", "7.0"), ("1 / 0\n", "2.0")):
        session.change(str(root / "broken.py"), text)
        hover = await session.hover(path, Position(5, 5))
        assert hover is not None
        assert numbers(hover.markdown) == [scale]
    for name in ("broken.py", "between.py", "catching.py"):
        session.close(str(root / name))


async def test_a_module_that_is_only_in_the_editor_is_found_and_lost(
    importing: tuple[Session, Path],
) -> None:
    session, root = importing
    path, helper = str(root / "asks.py"), str(root / "only_open.py")
    text = "try:\n    from only_open import SCALE\nexcept ImportError:\n    SCALE = 2.0\n"
    text += 'def f(x):\n    """Example inputs:\n        x: f32[3]\n    """\n    return x * SCALE\n'
    session.open(path, text)
    for _ in range(2):
        hover = await session.hover(path, Position(4, 5))
        assert hover is not None
        assert numbers(hover.markdown) == ["2.0"]
        session.open(helper, "SCALE = 9.0\n")
        hover = await session.hover(path, Position(4, 5))
        assert hover is not None
        assert numbers(hover.markdown) == ["9.0"]
        session.close(helper)
    session.close(path)


async def test_an_importer_is_shown_again_after_an_edit_of_what_it_imports(
    importing: tuple[Session, Path],
) -> None:
    project = Project(*importing, "nothing")
    assert await project.loss() == expected("nothing", 3)
    while not project.session.events.empty():
        project.session.events.get_nowait()
    project.edit(4)
    async with asyncio.timeout(PATIENCE):
        while await project.session.events.get() != Refresh(project.main):
            pass
    assert await project.loss() == expected("nothing", 4)
    project.close()
