"""Functions without example inputs, shown with proposals that can be traced."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features.kernels.table import record
from jaxsight.features.named_function import compiled_function
from jaxsight.features.proposals.assumed import assume, prefer_traced
from jaxsight.queries.programs.located_figures import LocatedFigures
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.features.rendering import with_hints, without_hints
from tests.features.test_fixtures import check
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

FIXTURES = Path(__file__).parents[1] / "fixtures" / "assumed"
HEAD = "import jax\nimport jax.numpy as jnp\n\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    """A session without background work: the tests themselves have proposals tried."""
    session = session_without_spare()
    folder = str(tmp_path_factory.mktemp("assumed"))
    settings = {**QUIET, "examplesFromPrograms": True, "python": sys.executable}
    session.configure([str(FIXTURES), folder], settings)
    session.engine.projects.of(folder)
    yield session
    await session.aclose()


async def shown(session: Session, path: Path, text: str) -> str:
    """The text with its hints, after proposals were tried."""
    is_open = session.engine.documents.get(str(path)) is not None
    (session.change if is_open else session.open)(str(path), text)
    await session.background.settle(str(path), patience=240)
    await assume(session.engine, str(path))
    return with_hints(text, await session.hints(str(path), wait=True))


@pytest.mark.parametrize("name", sorted(file.stem for file in FIXTURES.glob("*.py")))
async def test_hints(name: str, session: Session, update_fixtures: bool) -> None:
    file = FIXTURES / f"{name}.py"
    source = without_hints(file.read_text(encoding="utf-8"))
    actual = await shown(session, file, source)
    session.close(str(file))
    check(file, actual, update_fixtures)


async def test_hovers_name_the_assumed_inputs(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = f"{HEAD}def f(x, w):\n    # x: (N, D)\n    y = jnp.dot(x, w)\n    return y\n"
    await shown(session, path, text)
    function = await session.hover(str(path), Position(3, 4))
    expression = await session.hover(str(path), Position(5, 4))
    session.close(str(path))
    assert function is not None
    assert expression is not None
    first, *parts = function.markdown.split("\n\n")
    (signature,) = [part for part in parts if part.startswith("```python")]
    assert first == "*assumed inputs: x: f32\\[N, D\\], w: f32\\[D, M\\]*"
    assert "f(x: f32[N,D], w: f32[D,M]) -> f32[N,M]" in signature
    assert "c:f32[N,M] = dot_general" in function.markdown
    assert expression.markdown.split("\n\n")[0] == first
    assert "y: f32[N,M]" in expression.markdown
    assert not any(character.isdigit() for character in signature.replace("f32", ""))


async def test_lenses_keep_and_hide_them(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = f"{HEAD}def f(x):\n    # x: (N, D)\n    y = jnp.sin(x)\n    return y\n"
    with_shapes = await shown(session, path, text)
    assert "y⟦: ?f32[N,D]⟧" in with_shapes
    titles = [lens.title for lens in await session.lenses(str(path))]
    assert titles[0].startswith("assumed inputs: x: f32[N, D]")
    assert titles[1:3] == ["keep", "hide"]
    await session.show_proposed(str(path), "f", hide=True)
    assert "⟦" not in await shown(session, path, text)
    edited = text.replace("sin", "cos")
    assert "⟦" not in await shown(session, path, edited)
    await session.show_proposed(str(path), "f")
    assert "y⟦: ?f32[N,D]⟧" in await shown(session, path, edited)
    kept = await session.keep_proposed(str(path), "f")
    session.close(str(path))
    assert "x: f32[N, D]" in kept.edits[0].text


async def test_inputs_that_the_text_does_not_tell_are_offered(
    session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "model.py"
    text = f"{HEAD}def f(x, n: int):\n    y = jnp.sin(x) * n\n    return y\n"
    actual = await shown(session, path, text)
    await session.show_proposed(str(path), "f")
    asked = await shown(session, path, text)
    session.close(str(path))
    assert "def f(x, n: int):⟦not shown: not called: try x: f32[4, 8], n: 2⟧\n" in actual
    assert "?" not in actual
    assert "y⟦: ?f32[N,D]⟧" in asked


async def test_an_edit_that_fails_is_silent(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = f"{HEAD}def f(x):\n    # x: (N, D)\n    y = jnp.sin(x)\n    return y\n"
    await shown(session, path, text)
    failing = f"{HEAD}def f(x):\n    # x: (N, D)\n    y = jnp.sin(x)\n    raise ValueError(y)\n"
    session.change(str(path), failing)
    await session.background.settle(str(path), patience=240)
    assert (await session.report(str(path))).reported == []
    await assume(session.engine, str(path))
    labels = [hint.label for hint in await session.hints(str(path), wait=True)]
    assert labels == ["not shown: no program, test or notebook uses this file"]
    session.change(str(path), text)
    await assume(session.engine, str(path))
    assert "?f32[N,D]" in with_hints(text, await session.hints(str(path), wait=True))
    session.close(str(path))


async def test_outcomes_depend_on_what_a_function_uses(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "model.py")
    text = f"{HEAD}def g(x):\n    return jnp.sin(x)\n\n\ndef f(x):\n    y = jnp.abs(g(x))\n    return y\n"

    async def is_known(text: str) -> bool:
        session.change(path, text)
        document = await session.engine.documents.read(path)
        assert document is not None
        found = next((c, f) for c, f in document.module.functions if f.qualname == "f")
        return await session.engine.proposals.cached(document, *found) is not None

    await shown(session, Path(path), text)
    assert await is_known(text)
    assert await is_known(f"{text}\n\n# a comment\n")
    assert not await is_known(text.replace("sin", "cos"))
    assert await is_known(text)
    session.close(path)


async def test_findings_that_do_not_depend_on_inputs(session: Session, tmp_path: Path) -> None:
    path = str(tmp_path / "model.py")
    body = (
        "def f(key, x):\n"
        '    """\n'
        "    x: an array of shape (N, D)\n\n"
        "    Expect: kernels <= 0\n"
        '    """\n'
        "    a = jax.random.normal(key, x.shape)\n"
        "    b = jax.random.normal(key, x.shape)\n"
        "    c = x[100]\n"
        "    return a + b + c\n"
    )
    await shown(session, Path(path), HEAD + body)
    assert "f" in session.engine.documents.functions(path)
    findings = (await session.report(path, kernels=True)).reported
    session.close(path)
    (reused,) = findings
    assert reused.code == "JX403"
    assert any(note.startswith("assumed inputs: key: key<fry>[]") for note in reused.notes)


async def test_callers_with_assumed_inputs_say_nothing(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    helper = "def g(x):\n    # x: (N, D)\n    y = jnp.cos(x)\n    return y\n\n\n"
    text = f"{HEAD}{helper}def f(x):\n    # x: (N, D)\n    return g(x) + jnp.sin(1.0)\n"
    await shown(session, path, text)
    document = session.engine.documents.get(str(path))
    assert document is not None
    sources = {s.name: s.examples.source for s in session.engine.documents.subjects(document)}
    session.close(str(path))
    assert sources == {"g": "proposed", "f": "proposed"}


async def test_a_hint_where_a_trace_ends(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    body = "    y = jnp.sin(x)\n    z = y @ jnp.ones((9, 9))\n    return z\n"
    text = f"{HEAD}@jax.jit\ndef f(x):\n{body}\n\nf(jnp.ones((2, 3)))\n"
    actual = await shown(session, path, text)
    findings = (await session.report(str(path))).reported
    hints = await session.hints(str(path), wait=True)
    session.close(str(path))
    assert "    y⟦: f32[2,3]⟧ = jnp.sin(x)\n" in actual
    assert "    z = y @ jnp.ones((9, 9))⟦⊘ not traced further⟧\n" in actual
    assert [(each.range.start.line, each.code) for each in findings] == [(6, "JX330")]
    (ended,) = [hint for hint in hints if "⊘" in hint.label]
    assert "contracts axes of 3 and 9" in ended.tooltip


async def test_a_set_that_can_be_traced_is_preferred(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    body = "    y = x @ jnp.ones((3, 4))\n    return y\n"
    text = f"{HEAD}@jax.jit\ndef f(x):\n{body}\n\nf(jnp.ones(2))\nf(jnp.ones(3))\n"
    session.open(str(path), text)
    await session.background.settle(str(path), patience=240)
    hints = await session.hints(str(path), wait=True)
    session.close(str(path))
    labels = [hint.label for hint in hints if hint.range.start.line == 5]
    assert labels == [": f32[4]"]


async def test_unknown_arguments_of_calls_are_assumed(session: Session, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = (
        f"{HEAD}import numpy as np\n\n\n"
        "def step(w, batch):\n"
        "    y = jnp.tanh(jnp.einsum('nd,dm->nm', batch, w))\n"
        "    return y\n\n\n"
        "def main():\n"
        "    w = jnp.zeros((32, 10))\n"
        '    data = np.load("data.npy")\n'
        "    for i in range(1000):\n"
        "        print(step(w, data[i]))\n\n\n"
        'if __name__ == "__main__":\n'
        "    main()\n"
    )
    path.write_text(text, encoding="utf-8")
    session.open(str(path), text)
    engine = session.engine
    document = await engine.documents.read(str(path))
    assert document is not None
    await engine.dry_runs.update(document)
    for subject in engine.documents.subjects(document):
        if subject.name == "step":
            await prefer_traced(engine, document, subject)
    await assume(engine, str(path))
    hints = await session.hints(str(path), wait=True)
    titles = [lens.title for lens in await session.lenses(str(path))]
    session.close(str(path))
    assert "    y⟦: ?f32[N,10]⟧ = jnp.tanh(jnp.einsum('nd,dm->nm', batch, w))\n" in with_hints(
        text, hints
    )
    assert titles[0] == "assumed inputs: batch: f32[N, M]; others as called by `main`"
    assert "keep" not in titles


async def test_figures_say_that_sizes_are_assumed(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    text = f"{HEAD}def f(x):\n    # x: (N, D)\n    y = jnp.sin(x)\n    return y\n"
    session = session_without_spare()
    quiet = {"examplesFromPrograms": False, "proposeInputs": False}
    session.configure([str(tmp_path)], {**quiet, "python": sys.executable, "target": "cpu"})
    with_kernels = await shown(session, path, text)
    document = await session.show(str(path), "f", "kernels")
    jaxpr = await session.show(str(path), "f", "jaxpr")
    panel = await session.panel(str(path), "f")
    hover = await session.hover(str(path), Position(3, 4))
    _, kernels = await compiled_function(session.engine, str(path), "f")
    await session.aclose()
    assert "def f(x):⟦▣ ?1 kernel · cpu · with assumed sizes⟧" in with_kernels
    first, second, *_ = document.text.splitlines()
    assert first == "# assumed inputs: x: f32[N, D] where N=4, D=8"
    assert second.startswith("f: 1 kernel")
    assert second.endswith(" with assumed sizes")
    assert jaxpr.text.splitlines()[0] == first
    assert panel is not None
    assert panel.figures is not None
    assert panel.assumed == first.removeprefix("# ")
    assert panel.figures.headline.endswith(" with assumed sizes")
    assert hover is not None
    assert "*with assumed sizes:*\n\n| target |" in hover.markdown
    assert isinstance(kernels, LocatedFigures)
    assert record(kernels, "f")["assumed_inputs"] == ["x"]
