"""Every file in `tests/fixtures` is a specification: what an editor shows for it is written into
it.

`pytest tests/features/test_fixtures.py --update-fixtures` writes what is shown now; read the
difference before you keep it.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from jaxsight.session import Session
from tests.features.rendering import (
    cursor,
    with_hints,
    with_marks,
    without_hints,
    without_marks,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPECTED = "\n\n# hover:\n"


def cases(kind: str) -> list[str]:
    return sorted(file.stem for file in (FIXTURES / kind).glob("*.py"))


def check(file: Path, actual: str, update: bool) -> None:
    if update:
        file.write_text(actual, encoding="utf-8")
    assert actual == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", cases("hints"))
async def test_hints(name: str, session: Session, update_fixtures: bool) -> None:
    file = FIXTURES / "hints" / f"{name}.py"
    source = without_hints(file.read_text(encoding="utf-8"))
    session.open(str(file), source)
    await session.background.settle(str(file), patience=240)
    hints = await session.hints(str(file), wait=True)
    session.close(str(file))
    check(file, with_hints(source, hints), update_fixtures)


@pytest.mark.parametrize("name", cases("hover"))
async def test_hover(name: str, session: Session, update_fixtures: bool) -> None:
    file = FIXTURES / "hover" / f"{name}.py"
    written, _, _ = file.read_text(encoding="utf-8").partition(EXPECTED)
    source, position = cursor(written)
    session.open(str(file), source)
    hover = await session.hover(str(file), position)
    session.close(str(file))
    shown = hover.markdown if hover else "nothing"
    # Figures of a target are another test's (`test_kernels`), and may not be there yet.
    shown = re.sub(r"(?:^\|.*\n)+\n|^\*compiling for .*\n\n", "", shown, flags=re.MULTILINE)
    shown = shown.replace("/101/errors.html", "/errors.html")  # JAX's pages moved in 0.11
    expected = textwrap.indent(shown, "# ", lambda line: True).replace("# \n", "#\n")
    check(file, written.rstrip("\n") + EXPECTED + expected + "\n", update_fixtures)


@pytest.mark.parametrize("name", cases("findings"))
async def test_findings(name: str, session: Session, update_fixtures: bool) -> None:
    file = FIXTURES / "findings" / f"{name}.py"
    source = without_marks(file.read_text(encoding="utf-8"))
    session.open(str(file), source)
    await session.background.settle(str(file), patience=240)
    findings = (await session.report(str(file))).reported
    session.close(str(file))
    check(file, with_marks(source, findings), update_fixtures)
