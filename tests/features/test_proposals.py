"""Example inputs that jaxsight proposes: tried before they are offered, shown without writing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import optax
import pytest
import pytest_asyncio

from jaxsight.features.model import Action
from jaxsight.features.named_function import view_of
from jaxsight.features.proposals.assumed import worth_proposing
from jaxsight.queries.documents import Document
from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.settings.example_settings import ExampleSettings
from jaxsight.settings.reading import read_project
from jaxsight.source.text import Position, Range
from jaxsight.wire.messages.replies import Traced
from tests.marks import Mark
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODEL = '''\
import jax
import jax.numpy as jnp


def attention(q, k):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k)
    return jax.nn.softmax(scores, axis=-1)


def scaled(x, flag):
    if flag == 1:
        return x
    return x * flag


def impossible(x):
    raise ValueError(f"no {x}")


def shown(x):
    """
    Example inputs:
        x: f32[3]
    """
    return jnp.sin(x)


def test_it(x):
    return jnp.sin(x)


def main(x):
    print(jnp.sin(x))


def plain(x):
    return x + 1


def save(path: str, x):
    import os

    os.makedirs(path)
    return jnp.sin(x)
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def project(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Session, str]]:
    """A session on a project with the model and settings, and the model's path."""
    folder = tmp_path_factory.mktemp("proposals")
    path = folder / "model.py"
    path.write_text(MODEL, encoding="utf-8")
    (folder / "pyproject.toml").write_text('[project]\nname = "x"', encoding="utf-8")
    session = session_without_spare()
    settings = {**QUIET, "proposeInputs": True, "examplesAssumed": False}
    session.configure([str(folder)], {**settings, "python": sys.executable})
    session.open(str(path), MODEL)
    yield session, str(path)
    await session.aclose()


async def proposed(session: Session, path: str, text: str, name: str) -> list[Action]:
    """The actions that add example inputs to a function, after it was tried."""
    line = next(i for i, line in enumerate(text.splitlines()) if line.startswith(f"def {name}("))
    await session.engine.documents.read(path)
    document = session.engine.documents.now(path)
    assert document is not None
    await session.engine.dry_runs.update(document)
    found = next((c, f) for c, f in document.module.functions if f.qualname == name)
    await session.engine.proposals.outcome(document, *found)
    place = Position(line, 4)
    actions = await session.actions(path, Range(place, place))
    return [action for action in actions if action.title.startswith("Add example inputs")]


async def test_proposals_are_offered_that_can_be_traced(project: tuple[Session, str]) -> None:
    session, path = project
    first, *others = await proposed(session, path, MODEL, "attention")
    assert first.title == "Add example inputs: q: f32[4, 8, 16, 32], k: f32[4, 8, 64, 32]"
    assert len(others) <= 2
    changed = applied(MODEL, first.edits)
    assert "        where B=4, H=8, Q=16, D=32, K=64\n" in changed
    session.change(path, changed)
    view = await view_of(session.engine, path, "attention")
    assert isinstance(view.answer.reply, Traced)
    assert view.answer.reply.outputs == "f32[4,8,16,64]"
    session.change(path, MODEL)


async def test_the_best_guess_says_why_it_was_not_traced(project: tuple[Session, str]) -> None:
    session, path = project
    (only,) = await proposed(session, path, MODEL, "impossible")
    assert only.title.startswith("Add example inputs (not traced: “no JitTracer(float32[4,8])”)")
    assert "x: f32[N, D]\n        where N=4, D=8\n" in applied(MODEL, only.edits)


async def test_nothing_changes_on_disk(project: tuple[Session, str]) -> None:
    session, path = project
    (only,) = await proposed(session, path, MODEL, "save")
    assert only.title.startswith("Add example inputs (not traced: “refused: it would make `name`”)")
    assert not Path(path).with_name("name").exists()


async def test_shapes_are_shown_without_writing(project: tuple[Session, str]) -> None:
    session, path = project
    await proposed(session, path, MODEL, "attention")
    name = Position(4, 6)
    untraced = await session.hover(path, name)
    assert untraced is not None
    assert untraced.markdown == (
        "**attention** is not traced: no program, test or notebook uses this file; "
        "*Add example inputs* proposes some"
    )
    lens = next(lens for lens in await session.lenses(path) if lens.title == "show shapes…")
    assert lens.arguments == (path, "attention")
    await session.show_proposed(*lens.arguments)
    hover = await session.hover(path, name)
    assert hover is not None
    assert hover.markdown.startswith("*assumed inputs: q: f32\\[B, H, Q, D\\], k: f32")
    assert "4" not in hover.markdown
    await session.engine.sizes.explored((await view_of(session.engine, path, "attention")).answer)
    hints = await session.hints(path, wait=True)
    assert [hint.label for hint in hints if hint.range.start.line == 5] == [": ?f32[B,H,Q,K]"]
    titles = [lens.title for lens in await session.lenses(path) if lens.arguments[1] == "attention"]
    assert titles[:3] == [
        "assumed inputs: q: f32[B, H, Q, D], k: f32[B, H, K, D]",
        "keep",
        "hide",
    ]
    kept = await session.keep_proposed(path, "attention")
    assert kept.edits == (await proposed(session, path, MODEL, "attention"))[0].edits
    await session.show_proposed(path, "attention", hide=True)
    assert await session.hover(path, name) == untraced
    assert "attention" not in session.engine.documents.functions(path)


async def test_lenses_follow_in_the_background(project: tuple[Session, str]) -> None:
    session, path = project
    path = str(Path(path).with_name("other.py"))
    session.open(path, MODEL)
    titles: list[str] = []
    while "show shapes…" not in titles:
        titles = [lens.title for lens in await session.lenses(path)]
        await asyncio.sleep(0.1)
    session.close(path)


async def test_a_module_that_its_package_imports_from(project: tuple[Session, str]) -> None:
    session, path = project
    package = Path(path).with_name("package")
    package.mkdir()
    (package / "__init__.py").write_text("from package.model import attention, scaled\n", "utf-8")
    module = package / "model.py"
    module.write_text(MODEL, encoding="utf-8")
    session.open(str(module), MODEL)
    first, *_ = await proposed(session, str(module), MODEL, "attention")
    assert first.title.startswith("Add example inputs: q: f32[")
    session.close(str(module))


async def test_examples_of_a_library_are_written_to_the_project(
    project: tuple[Session, str],
) -> None:
    session, path = project
    library = Path(optax.__file__).parent / "losses" / "_regression.py"
    text = library.read_text(encoding="utf-8")
    session.open(str(library), text)
    first, *_ = await proposed(session, str(library), text, "cosine_distance")
    session.close(str(library))
    settings = Path(path).with_name("pyproject.toml")
    assert first.file == str(settings)
    assert first.title.endswith("(in pyproject.toml)")
    changed = applied(settings.read_text(encoding="utf-8"), first.edits)
    assert changed.startswith('[project]\nname = "x"\n\n[tool.jaxsight.examples]\n')
    settings.write_text(changed, encoding="utf-8")
    entries = read_project(settings.parent).values["examples"]
    assert list(entries) == ["optax.losses._regression:cosine_distance"]


async def test_nothing_runs_in_a_folder_that_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    mark = Mark(tmp_path / "ran")
    text = f"import jax.numpy as jnp\n{mark.statement}\n\ndef f(x):\n    return jnp.sin(x)\n"
    session = session_without_spare()
    session.configure([str(tmp_path)], {"python": sys.executable}, trusted=False)
    session.open(str(path), text)
    (only,) = await proposed(session, str(path), text, "f")
    assert only.title.startswith("Add example inputs (not traced: ")
    assert only.title.endswith(": x: f32[4, 8]")
    with pytest.raises(LookupError):
        await session.show_proposed(str(path), "f")
    assert not mark.has_run
    await session.aclose()


async def test_functions_that_use_jax_are_worth_it() -> None:
    document = Document("/project/model.py", MODEL)
    subjects = document.subjects(ExampleSettings({}, {}))
    worth = [function.qualname for _, function in worth_proposing(document, subjects)]
    assert worth == ["attention", "save"]
    tests = Document("/project/test_model.py", MODEL)
    assert list(worth_proposing(tests, ())) == []
    configured = Document("/project/model.py", f"{MODEL}\njax.config.update('x', 1)\n")
    assert [f.qualname for _, f in worth_proposing(configured, subjects)] == worth
    script = Document("/project/model.py", f"{MODEL}\ntrain()\n")
    assert [f.qualname for _, f in worth_proposing(script, subjects)] == worth
