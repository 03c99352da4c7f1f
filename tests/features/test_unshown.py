"""A file whose functions show nothing says why, in one place."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Consent, FileStatus
from jaxsight.features.findings.examined import examined
from jaxsight.projects.projects import Projects
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.trust import Policy, Trust
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = session_without_spare()
    root = tmp_path_factory.mktemp("unshown")
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


async def status(
    session: Session, path: Path, text: str, using: int, reason: str = ""
) -> FileStatus:
    """The status of a file once all is shown that will be, or it says why not."""
    session.open(str(path), text)
    while True:
        told = await asyncio.wait_for(session.events.get(), 60)
        if not isinstance(told, FileStatus) or (told.path, told.using_jax) != (str(path), using):
            continue
        if reason in told.why_detail and (told.why or told.shown == using):
            return told


ABSENT = """\
import datasets_that_nobody_has
import jax.numpy as jnp
import optax
from helper_of_another_machine.deep import show

try:
    import tensorflow_that_nobody_has
except ImportError:
    tensorflow_that_nobody_has = None


def loss(w, x):
    return jnp.mean((x @ w) ** 2)
"""


async def test_modules_that_are_not_found_are_the_reason(session: Session, tmp_path: Path) -> None:
    reason = "No example inputs for `loss`"  # known once some have been looked for
    told = await status(session, tmp_path / "absent.py", ABSENT, 1, reason)
    modules = "`datasets_that_nobody_has` and `helper_of_another_machine`"
    assert told.why == f"modules {modules} not found"
    assert f"Modules {modules} not found: install them, or add them" in told.why_detail
    assert told.shown == 0


async def test_missing_modules_are_named_where_all_is_shown(
    session: Session, tmp_path: Path
) -> None:
    text = "import absent_one; import absent_two.deep\n" + SOME[: SOME.index("class Model")]
    told = await status(session, tmp_path / "absent_but_shown.py", text, 2)
    assert told.why == "modules `absent_one` and `absent_two` not found"
    assert told.shown == 2


OPERATORS = """\
import jax

def predict(w, x):
    return x @ w

def step(w, g, rate):
    return w - rate * g

def main():
    print(jax.devices())
"""


async def test_functions_that_use_arrays_by_operators_alone_are_asked_about(
    tmp_path: Path,
) -> None:
    session = Session(Projects(Trust(Policy.ASK)))
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable, "proposeInputs": True})
    path = str(tmp_path / "operators.py")
    session.open(path, OPERATORS)
    async with asyncio.timeout(60):
        while not isinstance(consent := await session.events.get(), Consent):
            pass
    await session.decide(consent, "Once")
    for line, name in ((2, "predict"), (5, "step")):
        hover = await session.hover(path, Position(line, 4))
        assert hover is not None
        assert f"**{name}** is not traced: no" in hover.markdown  # example inputs, or not called
    hover = await session.hover(path, Position(8, 4))
    assert hover is not None
    assert "**main** is" in hover.markdown  # not traced, or shown as in a run
    reasons = {each.function: each.kind for each in await examined(session.engine, path)}
    assert reasons["main"] == "program"
    assert reasons["predict"] == reasons["step"] != "program"
    await session.aclose()


async def test_a_module_beside_the_file_is_found(session: Session, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("raise SystemExit('never imported to find out')\n")
    text = "import beside\nimport jax.numpy as jnp\n\n\ndef f(x):\n    return jnp.sin(x)\n"
    told = await status(session, tmp_path / "uses_it.py", text, 1)
    assert told.why == "no example inputs for 1 function"


SOME = """\
import jax
import jax.numpy as jnp


def shown(x):
    \"\"\"
    Example inputs:
        x: f32[3]
    \"\"\"
    return helper(x) + 1


def helper(x):
    return jnp.sin(x)


class Model:
    def __call__(self, x):
        return jnp.cos(x)


def factory():
    @jax.jit
    def step(x):
        return jnp.tan(x)

    return step


def no_jax(x):
    return x
"""


async def test_functions_without_inputs_are_counted(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "some.py"
    told = await status(session, path, SOME, 5)
    assert (told.why, told.shown) == ("no example inputs for 3 of 5 functions", 2)
    assert "`Model.__call__`, `factory` and `factory.<locals>.step`:" in told.why_detail
    line = SOME[: SOME.index("def __call__")].count("\n")
    hover = await session.hover(str(path), Position(line, 10))
    assert hover is not None
    assert hover.markdown == (
        "**\\_\\_call\\_\\_** is not traced: not called in a run of this file; "
        "*Add example inputs* proposes some"
    )
    line = SOME[: SOME.index("def step")].count("\n")
    hover = await session.hover(str(path), Position(line, 9))
    assert hover is not None
    assert "`factory` was run here, but nothing called it" in hover.markdown


async def test_errors_are_the_reason_where_all_have_inputs(
    session: Session, tmp_path: Path
) -> None:
    text = SOME[: SOME.index("class Model")].replace("jnp.sin(x)", "jnp.sin(MISSING)")
    path = tmp_path / "fails.py"
    told = await status(session, path, text.replace("helper(x) + 1", "jnp.sin(MISSING)"), 2)
    assert told.why == "no example inputs for 1 of 2 functions"
    shown = text[: text.index("def helper")].replace("helper(x) + 1", "jnp.sin(MISSING)")
    session.change(str(path), shown)
    while told.using_jax != 1:
        event = await asyncio.wait_for(session.events.get(), 60)
        told = event if isinstance(event, FileStatus) else told
    assert told.why == "`shown` cannot be traced: NameError: “name 'MISSING' is not defined”"


async def test_nothing_is_said_where_all_are_shown(session: Session, tmp_path: Path) -> None:
    told = await status(session, tmp_path / "all.py", SOME[: SOME.index("class Model")], 2)
    assert (told.why, told.why_detail, told.shown) == ("", "", 2)


SILENT = """\
import jax.numpy as jnp


def reached(x):
    return jnp.sin(x)


def failing(x):
    return reached(x) @ jnp.ones(4)


def after(x):
    return jnp.cos(x)


def nobody_calls(x):
    return jnp.tan(x)


w = failing(jnp.ones(3))
after(w)
"""
OF_DATA = """import jax.numpy as jnp
import numpy as np


def of_data(data, scale):
    if data.mean() > scale:
        return jnp.exp(data)


data = np.load("there_is_none.npy")
of_data(data, 2.0)
"""


async def test_a_function_that_shows_nothing_says_why_at_its_definition(
    session: Session, tmp_path: Path
) -> None:
    path = str(tmp_path / "silent.py")
    session.open(path, SILENT)
    await session.background.settle(path, patience=240)
    hints = [h for h in await session.hints(path, wait=True) if h.label.startswith("not shown")]
    hover = await session.hover(path, Position(11, 5))
    reasons = {each.function: each.reason for each in await examined(session.engine, path)}
    session.close(path)
    assert [(hint.range.start.line, hint.label) for hint in hints] == [
        (11, "not shown: an error ends the program before it is called"),
        (15, "not shown: not called in a run of this file"),
    ]
    assert hover is not None
    assert "an error ends the program before it is called" in hover.markdown
    assert reasons["after"] == "an error ends the program before it is called"


async def test_a_function_of_unknown_data_says_so(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "of_data.py")
    session.open(path, OF_DATA)
    await session.background.settle(path, patience=240)
    hints = [h for h in await session.hints(path, wait=True) if h.label.startswith("not shown")]
    session.close(path)
    assert [(hint.range.start.line, hint.label) for hint in hints] == [
        (4, "not shown: called only with unknown `data`: data were not loaded")
    ]


NESTED = """import jax
import jax.numpy as jnp
import tensorflow_datasets as tfds


def main():
    data = tfds.load("nobody_has_it")
    scale = jnp.ones(3)

    @jax.jit
    def step(w, batch):
        return jnp.mean(batch["x"] @ w * scale)

    def unused(w):
        return jnp.sin(w)

    for batch in data:
        step(jnp.zeros((4, 3)), batch)


main()
"""


async def test_nested_functions_say_why(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "nested.py")
    session.open(path, NESTED)
    await session.background.settle(path, patience=240)
    hints = [h for h in await session.hints(path, wait=True) if h.label.startswith("not shown")]
    session.close(path)
    assert [(hint.range.start.line, hint.label) for hint in hints] == [
        (10, "not shown: called only with unknown `batch`: data were not loaded"),
        (13, "not shown: `main` was run here, but nothing called it"),
    ]
