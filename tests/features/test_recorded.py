"""A recorded run: its calls are example inputs at once, and never an error at the user's line."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Message
from jaxsight.recording import recorded_file
from jaxsight.recording.recorded_file import RecordedCall
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.features.rendering import with_hints
from tests.quiet import QUIET
from tests.sessions import session_without_spare

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '''\
import jax.numpy as jnp


def loss(params, x):
    y = x @ params["w"]
    return y.sum()


def report(x, step):
    print(float(x), step)


def documented(x):
    """
    Example inputs:
        x: f32[2]
    """
    y = x * 2
    return y
'''
CALLS = {
    "loss": ["params: {'w': f32[4, 3]}\nx: f32[8, 4]", "params: {'w': f32[4, 3]}\nx: f32[1, 4]"],
    "report": ["x: f32[]\nstep: 3"],
    "documented": ["x: f32[7]"],
    "gone": ["x: f32[7]"],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "pyproject.toml").touch()
    (root / "model.py").write_text(SOURCE)
    return root


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(root: Path) -> AsyncIterator[Session]:
    session = session_without_spare()
    session.configure([str(root)], {**QUIET, "python": sys.executable})
    session.open(str(root / "model.py"), SOURCE)
    yield session
    await session.aclose()


def record(session: Session, root: Path) -> str:
    """Write a recording, as the editor's watcher reports it; return the file of the functions."""
    recorded_file.write(
        root,
        {
            ("model.py", name): tuple(
                RecordedCall(text, 3, name != "report", "2026-11-24") for text in texts
            )
            for name, texts in CALLS.items()
        },
    )
    session.files_changed([str(recorded_file.path_in(root))])
    return str(root / "model.py")


async def test_hints_of_a_recorded_function_appear_right_after_the_run(
    session: Session, root: Path
) -> None:
    path = str(root / "model.py")
    assert session.engine.documents.functions(path) == ["documented"]
    record(session, root)
    assert session.engine.documents.functions(path) == ["loss", "report", "documented"]
    shown = with_hints(SOURCE, await session.hints(path, wait=True))
    assert '    y⟦: f32[8,3]⟧ = x @ params["w"]\n' in shown
    hover = await session.hover(path, Position(3, 5))
    assert hover is not None
    assert "as recorded" in hover.markdown
    lenses = [lens.title for lens in await session.lenses(path) if lens.range.start.line == 3]
    assert lenses[0] == "as recorded (1 of 2)"


async def test_what_is_written_wins_over_what_was_recorded(session: Session, root: Path) -> None:
    path = record(session, root)
    assert "y⟦: f32[2]⟧ = x * 2" in with_hints(SOURCE, await session.hints(path, wait=True))


async def test_a_function_that_was_never_traced_has_no_error(session: Session, root: Path) -> None:
    path = record(session, root)
    assert (await session.report(path)).reported == []


async def test_another_recorded_call_can_be_chosen(session: Session, root: Path) -> None:
    path = record(session, root)
    assert session.sets(path, "loss") == ["as recorded", "as recorded 2"]
    session.choose_set(path, "loss", "as recorded 2")
    shown = with_hints(SOURCE, await session.hints(path, wait=True))
    assert '    y⟦: f32[1,3]⟧ = x @ params["w"]\n' in shown


async def test_a_recording_that_no_client_reports(session: Session, root: Path) -> None:
    path = str(root / "model.py")
    call = RecordedCall(
        "params: {'w': f32[4, 9]}\nx: f32[8, 4]", 1, is_traced=True, date="2026-11-24"
    )
    recorded_file.write(root, {("model.py", "loss"): (call,)})
    session.look_for_recordings()
    shown = with_hints(SOURCE, await session.hints(path, wait=True))
    assert '    y⟦: f32[8,9]⟧ = x @ params["w"]\n' in shown


async def test_a_broken_file_is_one_message(session: Session, root: Path) -> None:
    path = record(session, root)
    file = recorded_file.path_in(root)
    file.write_text("{")
    session.files_changed([str(file)])
    session.files_changed([str(file)])
    assert session.engine.documents.functions(path) == ["documented"]
    messages = []
    while not session.events.empty():
        event = session.events.get_nowait()
        if isinstance(event, Message):
            messages.append(event.text)
    (message,) = messages
    assert message.endswith(
        "recorded.json is ignored: it is not JSON (Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1)); delete it, or record again"
    )


PROGRAM = """\
import jax.numpy as jnp


def scaled(x, n):
    y = x * n
    return y


if __name__ == "__main__":
    scaled({call})
"""
OLD = "as recorded before the program changed"


@pytest.mark.parametrize(
    ("recorded", "call", "shown", "is_old"),
    [
        ("x: f32[8, 4]\nn: 2", "jnp.ones((8, 4)), 2", "f32[8,4]", False),
        ("x: f32[8, 4]\nn: 2", "jnp.ones((8, 5)), 2", "f32[8,5]", True),
        ("x: f32[8, 4]\nn: 2", "jnp.ones((8, 4), int), 2", "i32[8,4]", True),
        ("x: f32[8, 4]\nn: 2", "jnp.ones((8, 4)), 3", "f32[8,4]", False),
        ("x: 2\nn: f32[3]", "jnp.ones(5), 3", "f32[3]", False),
        ("x: f32[8, 4]\nn: 2", "jnp.ones(len(open('none').read())), 2", "f32[8,4]", False),
    ],
)
async def test_a_recording_counts_while_the_program_agrees_with_it(
    session: Session, root: Path, recorded: str, call: str, shown: str, is_old: bool
) -> None:
    path, text = root / "program.py", PROGRAM.format(call=call)
    path.write_text(text)
    recorded_call = RecordedCall(recorded, 3, True, "2026-11-24")
    recorded_file.write(root, {("program.py", "scaled"): (recorded_call,)})
    session.files_changed([str(recorded_file.path_in(root))])
    session.open(str(path), text)
    await session.background.settle(str(path), patience=240)
    assert f"    y⟦: {shown}⟧ = x * n\n" in with_hints(
        text, await session.hints(str(path), wait=True)
    )
    observed = f"as in `scaled({call})`"
    assert session.sets(str(path), "scaled") == ([observed, OLD] if is_old else ["as recorded"])
    session.close(str(path))


async def test_a_test_of_other_sizes_says_nothing_of_a_recording(
    session: Session, root: Path
) -> None:
    path, text = root / "tested.py", PROGRAM.partition("\n\nif")[0]
    path.write_text(text)
    test = "import tested\n\ndef test_it():\n    tested.scaled(tested.jnp.ones(2), 2)\n"
    (root / "test_tested.py").write_text(test)
    recorded_call = RecordedCall("x: f32[8, 4]\nn: 2", 3, True, "2026-11-24")
    recorded_file.write(root, {("tested.py", "scaled"): (recorded_call,)})
    session.files_changed([str(recorded_file.path_in(root))])
    session.open(str(path), text)
    await session.background.settle(str(path), patience=240)
    assert session.sets(str(path), "scaled") == ["as recorded"]
    session.close(str(path))
