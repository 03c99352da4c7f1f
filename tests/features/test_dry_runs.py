"""Functions without example inputs have those of calls in programs of the project, run dry."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Refresh
from jaxsight.features import background
from jaxsight.projects.project import Project
from jaxsight.session import Session
from jaxsight.source.text import Position
from jaxsight.wire.messages.requests import DryRun, Request, Trace
from tests.features.rendering import with_hints
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = """\
import jax
import jax.numpy as jnp


def init(key, size):
    w = jax.random.normal(key, (size, 3))
    return {"w": w, "step": 0}


def apply(params, x):
    y = x @ params["w"]
    return jnp.tanh(y)


def train(data):
    def loss(params, batch):
        error = apply(params, batch)
        return jnp.mean(error)

    @jax.jit
    def update(params, batch):
        grads = jax.grad(loss, allow_int=True)(params, batch)
        return grads

    params = init(jax.random.key(0), 5)
    for batch in data:
        params = update(params, batch)
    return params


def unused(x):
    return jnp.sin(x)
"""

TEST = """\
import jax
import jax.numpy as jnp

import models


def test_apply():
    params = models.init(jax.random.key(0), 4)
    models.apply(params, jnp.ones((7, 4)))
"""

MAIN = """\
import jax.numpy as jnp
from models import train

OPEN = "PATH"


def main():
    with open(OPEN, "w") as file:
        file.write("written")
    train([jnp.ones((6, 5))])


if __name__ == "__main__":
    main()
"""


@pytest_asyncio.fixture(loop_scope="module")
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    (tmp_path / "pyproject.toml").touch()
    session = Session()
    session.configure([str(tmp_path)], {**QUIET, "python": sys.executable})
    yield session
    await session.aclose()


async def opened(session: Session, root: Path, name: str, text: str) -> str:
    path = str(root / name)
    (root / name).write_text(text)
    session.open(path, text)
    await session.background.settle(path)
    return path


def program(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text.replace("PATH", str(root / "written.txt")))


async def test_a_test_and_a_script_say_what_functions_are_called_with(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "models_test.py", TEST)
    program(tmp_path, "main.py", MAIN)
    path = await opened(session, tmp_path, "models.py", MODELS)
    names = session.engine.documents.functions(path)
    assert {"init", "apply", "train"} <= {*names}
    assert "unused" not in names
    shown = with_hints(MODELS, await session.hints(path, wait=True))
    assert '    y⟦: f32[7,3]⟧ = x @ params["w"]\n' in shown
    assert "    w⟦: f32[4,3]⟧ = jax.random.normal(key, (size, 3))\n" in shown
    hover = await session.hover(path, Position(9, 5))
    assert hover is not None
    assert "as called in models\\_test.py:9" in hover.markdown
    lenses = [lens.title for lens in await session.lenses(path) if lens.range.start.line == 9]
    assert lenses[0].startswith("as called in models_test.py:9")
    assert not (tmp_path / "written.txt").exists()
    assert not [
        f for f in (await session.report(path)).reported if f.code.startswith(("JX4", "JX9"))
    ]


NESTED = """\
import jax
import jax.numpy as jnp


def main():
    @jax.jit
    def step(params):
        z = jnp.cos(params)
        return z

    return step(jnp.ones((3, 4)))


if __name__ == "__main__":
    main()
"""


async def test_nested_functions_are_shown_as_their_function_calls_them(
    session: Session, tmp_path: Path
) -> None:
    path = await opened(session, tmp_path, "models.py", NESTED)
    shown = with_hints(NESTED, await session.hints(path, wait=True))
    assert "        z⟦: f32[3,4]⟧ = jnp.cos(params)\n" in shown
    hover = await session.hover(path, Position(6, 9))
    assert hover is not None
    assert "as called by `main`" in hover.markdown
    assert "```jaxpr" in hover.markdown
    lenses = [lens.title for lens in await session.lenses(path) if lens.range.start.line == 5]
    assert lenses[0] == "as called by `main`"


async def test_several_calls_are_sets_to_choose_from(session: Session, tmp_path: Path) -> None:
    calls = "".join(f"    f(jnp.ones({n}))\n" for n in (2, 3, 4, 5))
    text = "import jax.numpy as jnp\n\ndef f(x):\n    return jnp.sin(x)\n\ndef test_f():\n" + calls
    path = await opened(session, tmp_path, "models.py", text)
    sets = session.sets(path, "f")
    assert sets == ["as called by `test_f`", "as called by `test_f` 2", "as called by `test_f` 3"]


FAILS = """\
import jax.numpy as jnp


def f(x):
    y = x @ jnp.ones((3, 3))
    return y


def test_error():
    try:
        f(jnp.ones(4))
    except TypeError:
        pass


def test_f():
    f(jnp.ones(3))
"""


async def test_the_first_call_that_can_be_traced_is_shown(session: Session, tmp_path: Path) -> None:
    path = await opened(session, tmp_path, "models.py", FAILS)
    assert {*session.sets(path, "f")} == {"as called by `test_f`", "as called by `test_error`"}
    shown = with_hints(FAILS, await session.hints(path, wait=True))
    assert "    y⟦: f32[3]⟧ = x @ jnp.ones((3, 3))\n" in shown


CALLED = """\
import jax.numpy as jnp


def f(x):
    y = x @ jnp.ones((3, 3))
    return y


if __name__ == "__main__":
    f(jnp.ones(4))
"""


async def test_a_call_at_the_top_level_that_fails_is_replaced(
    session: Session, tmp_path: Path
) -> None:
    test = "import models\n\ndef test_f():\n    models.f(models.jnp.ones(3))\n"
    program(tmp_path, "test_models.py", test)
    path = await opened(session, tmp_path, "models.py", CALLED)
    assert session.sets(path, "f")[0] == "as called in test_models.py:4"


async def test_what_is_written_takes_precedence(session: Session, tmp_path: Path) -> None:
    program(tmp_path, "models_test.py", TEST)
    docstring = '    """Apply.\n\n    Example inputs:\n        params: {"w": f32[2, 2]}\n        x: f32[2, 2]\n    """\n'
    head = "def apply(params, x):\n"
    path = await opened(session, tmp_path, "models.py", MODELS.replace(head, head + docstring))
    assert session.sets(path, "apply") == [""]
    assert session.sets(path, "init") == ["as called in models_test.py:8"]


async def test_an_edit_of_the_program_or_the_file_has_other_calls(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "models_test.py", TEST)
    path = await opened(session, tmp_path, "models.py", MODELS)
    test = str(tmp_path / "models_test.py")
    session.open(test, TEST.replace("(7, 4)", "(9, 4)"))
    await session.background.settle(path)
    shown = with_hints(MODELS, await session.hints(path, wait=True))
    assert '    y⟦: f32[9,3]⟧ = x @ params["w"]\n' in shown
    edited = MODELS.replace("(size, 3)", "(size, 2)")
    session.change(path, edited)
    await session.background.settle(path)
    shown = with_hints(edited, await session.hints(path, wait=True))
    assert '    y⟦: f32[9,2]⟧ = x @ params["w"]\n' in shown


async def test_where_a_function_is_called_is_never_an_earlier_line(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "models_test.py", TEST)
    path, test = str(tmp_path / "models.py"), str(tmp_path / "models_test.py")
    session.open(path, MODELS)
    session.open(test, TEST)
    place = Position(MODELS.split("\n").index("def apply(params, x):"), 4)
    for text, line in ((TEST, 9), (f"\n\n{TEST}", 11), (TEST.replace("\n\n\n", "\n\n"), 8)):
        session.change(test, text)
        before = await session.hover(path, place)
        assert before is None or before.stale or "as called in" not in before.markdown
        await session.background.settle(path, patience=240)
        after = await session.hover(path, place)
        assert after is not None
        assert f"test.py:{line}" in after.markdown


async def test_what_is_known_of_the_first_programs_is_not_stale_while_others_run(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "models_test.py", TEST)
    slow = "import time\nimport models\n\ndef test_it():\n    end = time.perf_counter() + 4\n"
    slow += "    while time.perf_counter() < end:\n        sum(range(1000))\n"
    program(tmp_path, "slow_test.py", slow)
    path = str(tmp_path / "models.py")
    session.open(path, MODELS)
    looking = asyncio.ensure_future(session.background.settle(path, patience=240))
    line = MODELS.split("\n").index("def apply(params, x):")
    while not looking.done():
        hover = await session.hover(path, Position(line, 4))
        assert hover is None or not hover.stale, hover.markdown
        await asyncio.sleep(0.05)
    assert "apply" in session.engine.documents.functions(path)


async def test_a_program_that_ends_its_tracer_costs_only_its_own_calls(
    session: Session, tmp_path: Path
) -> None:
    kill = "import ctypes\nimport models\n\ndef test_it():\n    ctypes.string_at(0)\n"
    program(tmp_path, "models_test.py", kill)
    program(tmp_path, "main.py", MAIN)
    path = await opened(session, tmp_path, "models.py", MODELS)
    assert "train" in session.engine.documents.functions(path)
    assert '    y⟦: f32[6,3]⟧ = x @ params["w"]\n' in with_hints(
        MODELS, await session.hints(path, wait=True)
    )


async def test_the_setting_and_missing_trust_run_nothing(tmp_path: Path) -> None:
    program(tmp_path, "models_test.py", TEST)
    session = Session()
    quiet = {**QUIET, "python": sys.executable}
    session.configure([str(tmp_path)], {**quiet, "examplesFromPrograms": False})
    path = await opened(session, tmp_path, "models.py", MODELS)
    assert session.engine.documents.functions(path) == []
    session.configure([str(tmp_path)], quiet)
    await session.background.settle(path)
    assert "apply" in session.engine.documents.functions(path)
    await session.aclose()


async def test_an_unknown_argument_is_not_shown_as_known(session: Session, tmp_path: Path) -> None:
    script = "import models\n\nparams = models.init(models.jax.random.key(0), 4)\n"
    script += "x = load('x')\nmodels.apply(params, x)\n"
    program(tmp_path, "main.py", script)
    path = await opened(session, tmp_path, "models.py", MODELS)
    shown = with_hints(MODELS, await session.hints(path, wait=True))
    assert '    y = x @ params["w"]\n' in shown
    (call,) = session.engine.dry_runs.partial(path, "apply")
    assert (call.unknown, [name for name, _ in call.known]) == (("x",), ["params"])
    assert call.label == "as called in main.py:5"


CONDITIONAL = """\
import jax.numpy as jnp
import models


def main():
    data = jnp.load("missing.npy")
    if data.mean() > 0:
        models.unused(jnp.ones((2, 3)))
    elif len(data) > 100:
        models.apply(models.init(models.jax.random.key(0), 4), jnp.ones((7, 4)))
    models.init(models.jax.random.key(0), 4)


if __name__ == "__main__":
    main()
"""


async def test_a_call_says_the_unknown_conditions_under_which_it_happens(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "main.py", CONDITIONAL)
    path = await opened(session, tmp_path, "models.py", MODELS)
    first, second = "`data.mean() > 0` (line 7)", "`len(data) > 100` (line…"
    assert session.sets(path, "unused") == [f"as called in main.py:8 if {first}"]
    assert session.sets(path, "apply") == [f"as called in main.py:10 if not {first} and {second}"]
    assert session.sets(path, "init") == ["as called in main.py:11"]


async def test_the_background_shows_them_and_says_so(session: Session, tmp_path: Path) -> None:
    program(tmp_path, "models_test.py", TEST)
    path = str(tmp_path / "models.py")
    session.open(path, MODELS)
    while not await session.hints(path):
        await refreshed(session)
    assert "apply" in session.engine.documents.functions(path)


WRITTEN = MODELS.replace(
    "    return jnp.sin(x)",
    '    """Sine.\n\n    Example inputs:\n        x: f32[3]\n    """\n    return jnp.sin(x)',
)


async def test_programs_do_not_run_while_the_file_is_edited(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tracer would be busy when the next edit is asked about."""
    program(tmp_path, "models_test.py", TEST)
    path = str(tmp_path / "models.py")
    session.open(path, WRITTEN)
    while "y⟦: f32[7,3]⟧" not in with_hints(WRITTEN, await session.hints(path)):
        await refreshed(session)
    asked: list[Request[object]] = []
    ask = Project.ask

    async def noting(project: Project, request: Request[object], **options: object) -> object:
        asked.append(request)
        return await ask(project, request, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Project, "ask", noting)
    monkeypatch.setattr(background, "_TYPING", 1000.0)
    for number in range(3):
        edited = WRITTEN.replace("sin(x)", f"sin({number} * x)")
        session.change(path, edited)
        hover = await session.hover(
            path, Position(WRITTEN[: WRITTEN.index("unused")].count("\n"), 5)
        )
        assert hover is not None
        assert "mul" in hover.markdown
        await refreshed(session)  # what follows an edit in the background has begun
        hints = await session.hints(path)
        assert any(hint.stale for hint in hints)
    programs = [r for r in asked if isinstance(r, DryRun) or (isinstance(r, Trace) and r.dry_call)]
    assert programs == []
    monkeypatch.setattr(background, "_TYPING", 0.0)
    edited = edited.replace("(size, 3)", "(size, 2)")
    session.change(path, edited)
    while "y⟦: f32[7,2]⟧" not in with_hints(edited, await session.hints(path)):
        await refreshed(session)


async def refreshed(session: Session) -> None:
    while not isinstance(await session.events.get(), Refresh):
        pass


DECORATOR = """\
import jax.numpy as jnp

HOOKS = []


def register(function):
    HOOKS.append(function)
    return function
"""

DECORATED = """\
from decorator import register


def hook(x):
    return x


READ = register(hook)
"""


async def test_inputs_that_cannot_be_traced_are_rejected_also_if_a_hover_asked_first(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "main.py", DECORATED)
    path = str(tmp_path / "decorator.py")
    session.open(path, DECORATOR, in_background=False)
    document = await session.engine.documents.read(path)
    assert document is not None
    assert await session.engine.dry_runs.update(document)
    assert await session.hover(path, Position(5, 5)) is not None
    await session.background.settle(path)
    assert await session.hover(path, Position(5, 5)) is None


USED = """\
import jax.numpy as jnp


def f(x):
    return jnp.sin(x)
"""


async def test_a_file_that_becomes_a_program_is_run(session: Session, tmp_path: Path) -> None:
    program(tmp_path, "main.py", "from used import f\n")
    path, main = str(tmp_path / "used.py"), str(tmp_path / "main.py")
    session.open(main, "from used import f\n")
    session.open(path, USED)
    while looking := [t for t in asyncio.all_tasks() if t.get_name().startswith("trace ")]:
        await asyncio.wait(looking)
    assert session.engine.documents.functions(path) == []
    session.change(main, "import jax.numpy as jnp\nfrom used import f\n\nf(jnp.ones(7))\n")
    async with asyncio.timeout(60):
        while not session.engine.documents.functions(path):
            await session.events.get()


TESTS = """\
import unittest

import jax.numpy as jnp
import pytest


def variants(**kinds):
    return lambda test: test


def scaled(x):
    y = x * 2
    return jnp.sin(y)


def first(x):
    a = jnp.sin(x)
    return a


def last(x):
    b = jnp.cos(x)
    return b


class TestScaled(unittest.TestCase):
    def setUp(self):
        self.x = jnp.ones((3, 4))

    @variants(with_jit=True)
    def test_scaled(self):
        y = scaled(self.x)
        self.assertGreater(float(y.sum()), 0.0)
        z = y.T

    def test_without_arrays(self):
        self.assertTrue(callable(jnp.sin))


FUNCTIONS = [first] * 5 + [last]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function(function):
    w = function(jnp.ones(5))


def test_of_a_fixture(params):
    return jnp.sin(params)
"""


async def test_tests_show_what_a_run_of_them_computes(session: Session, tmp_path: Path) -> None:
    path = await opened(session, tmp_path, "scaled_test.py", TESTS)
    shown = with_hints(TESTS, await session.hints(path, wait=True))
    assert "        y⟦: f32[3,4]⟧ = scaled(self.x)\n" in shown
    assert "        z⟦: f32[4,3]⟧ = y.T\n" in shown  # what follows a comparison of values, too
    assert "    w⟦: f32[5]⟧ = function(jnp.ones(5))\n" in shown
    # Of the cases of a list, those are run that name the file's functions.
    assert "    a⟦: f32[5]⟧ = jnp.sin(x)\n" in shown
    assert "    b⟦: f32[5]⟧ = jnp.cos(x)\n" in shown
    why = "not shown: it is not run here: its arguments are not in this file"
    assert f"def test_of_a_fixture(params):⟦{why}⟧\n" in shown
    line = TESTS[: TESTS.index("def test_without_arrays")].count("\n")
    hover = await session.hover(path, Position(line, 10))
    assert hover is not None
    assert "is shown as in a run of this file" in hover.markdown


async def test_a_function_that_no_program_calls_names_the_programs(
    session: Session, tmp_path: Path
) -> None:
    program(tmp_path, "models_test.py", TEST)
    path = await opened(session, tmp_path, "models.py", MODELS)
    shown = with_hints(MODELS, await session.hints(path, wait=True))
    assert "def unused(x):⟦not shown: not called in a run of `models_test.py`⟧\n" in shown
    alone = await opened(session, tmp_path, "alone.py", MODELS)
    shown = with_hints(MODELS, await session.hints(alone, wait=True))
    assert "def unused(x):⟦not shown: no program, test or notebook uses this file⟧" in shown


async def test_calls_of_a_package_s_own_copy_of_the_file_are_seen(
    session: Session, tmp_path: Path
) -> None:
    package = tmp_path / "kernels"
    package.mkdir()
    (package / "__init__.py").write_text("from kernels.rbf import rbf, scaled\n")
    text = """\
import jax.numpy as jnp

from kernels import base


def rbf(x, y):
    d = base.distance(x, y)
    return jnp.exp(-d)


def scaled(factor):
    def apply(x):
        z = jnp.sin(x) * factor
        return z

    return apply
"""
    (package / "base.py").write_text(
        "import jax.numpy as jnp\n\n\ndef distance(x, y):\n    return jnp.sum((x - y) ** 2)\n"
    )
    (tmp_path / "rbf_test.py").write_text(
        "import jax.numpy as jnp\nimport kernels\n\n\n"
        "def test_rbf():\n    kernels.rbf(jnp.ones(3), jnp.ones(3))\n"
        "    kernels.scaled(2.0)(jnp.ones((2, 5)))\n"
    )
    path = await opened(session, tmp_path, "kernels/rbf.py", text)
    shown = with_hints(text, await session.hints(path, wait=True))
    assert "    d⟦: f32[]⟧ = base.distance(x, y)\n" in shown
    assert "        z⟦: f32[2,5]⟧ = jnp.sin(x) * factor\n" in shown
