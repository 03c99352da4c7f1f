"""What an edit costs and what is shown meanwhile."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.events import Refresh
from jaxsight.features.model import Hint
from jaxsight.features.named_function import compiled_function, view_of
from jaxsight.session import Session
from jaxsight.source.text import Position
from tests.features.rendering import with_hints
from tests.marks import Mark
from tests.quiet import QUIET

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '''\
import jax.numpy as jnp

WIDTH = 3


def helper(x):
    return x * jnp.ones(WIDTH)


def f(x):
    """Twice.

    Example inputs:
        x: f32[3]
    """
    y = helper(x)
    return y + y


def unrelated(x):
    return x
'''


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Session]:
    session = Session()
    root = tmp_path_factory.mktemp("project")
    # What ends a trace is an edit, never its own limit.
    limits = {"timeouts": {"trace": 1000}}
    session.configure([str(root)], {**QUIET, **limits, "python": sys.executable})
    yield session
    await session.aclose()


@pytest.fixture
def file(tmp_path: Path) -> str:
    return str(tmp_path / "edited.py")


async def trace_id(session: Session, path: str) -> int:
    """Which trace the shown answer comes from."""
    view = await view_of(session.engine, path, "f")
    assert not view.stale
    return view.answer.reply.id


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("WIDTH = 3", "\n\n# moved\nWIDTH = 3"),
        ("    y = helper(x)", "    # why\n    y = helper( x )"),
        ('"""Twice.', '"""Two times: better words.'),
        ("def unrelated(x):\n    return x", "def unrelated(z):\n    return z + 1"),
        ("def unrelated", "def new():\n    pass\n\n\ndef unrelated"),
        ("def unrelated(x):", "def unrelated(x:"),
    ],
    ids=[
        "lines moved",
        "comment and spacing",
        "docstring",
        "other function",
        "new function",
        "syntax error elsewhere",
    ],
)
async def test_what_changes_no_meaning_costs_no_trace(
    editing: Session, file: str, before: str, after: str
) -> None:
    editing.open(file, SOURCE)
    first = await trace_id(editing, file)
    edited = SOURCE.replace(before, after)
    assert edited != SOURCE
    editing.change(file, edited)
    assert await trace_id(editing, file) == first
    shown = with_hints(edited, await editing.hints(file, wait=True))
    assert "    y⟦: f32[3]⟧ = helper" in shown
    editing.close(file)


@pytest.mark.parametrize(
    ("before", "after", "shape"),
    [
        ("helper(x)\n", "helper(x)[None]\n", "f32[1,3]"),
        ("WIDTH = 3", "WIDTH = (5, 3)", "f32[5,3]"),
        ("x: f32[3]", "x: f32[4, 3]", "f32[4,3]"),
        ("return x * jnp", "return x.astype(jnp.bfloat16) * jnp", "f32[3]"),
    ],
    ids=["body", "constant", "example inputs", "helper"],
)
async def test_what_changes_the_meaning_is_traced_again(
    editing: Session, file: str, before: str, after: str, shape: str
) -> None:
    editing.open(file, SOURCE)
    first = await trace_id(editing, file)
    editing.change(file, SOURCE.replace(before, after))
    assert await trace_id(editing, file) != first
    hints = await editing.hints(file, wait=True)
    assert [hint.label for hint in hints] == [f": {shape}"]
    editing.close(file)


async def test_going_back_to_an_earlier_text_costs_no_trace(editing: Session, file: str) -> None:
    editing.open(file, SOURCE)
    first = await trace_id(editing, file)
    editing.change(file, SOURCE.replace("WIDTH = 3", "WIDTH = (2, 3)"))
    assert await trace_id(editing, file) != first
    editing.change(file, SOURCE)
    assert await trace_id(editing, file) == first
    editing.close(file)


async def test_half_a_name_keeps_the_hints_below_it_marked(editing: Session, file: str) -> None:
    editing.open(file, SOURCE)
    await trace_id(editing, file)
    typing = SOURCE.replace("    y = helper(x)\n", "    z = helper(x)\n    m\n    y = helper(x)\n")
    editing.change(file, typing)
    shown = with_hints(typing, await editing.hints(file, wait=True))
    assert "    z⟦: f32[3]⟧ = helper(x)\n    m\n    y⟦: ~f32[3]⟧ = helper(x)\n" in shown
    changed = typing.replace("    m\n    y = helper(x)", "    m\n    y = 3")
    editing.change(file, changed)
    assert "y = 3\n" in with_hints(changed, await editing.hints(file, wait=True))
    editing.close(file)


async def test_a_syntax_error_keeps_the_last_good_answers_shifted_and_marked(
    editing: Session, file: str
) -> None:
    editing.open(file, SOURCE)
    await trace_id(editing, file)
    broken = "# one line more\n" + SOURCE.replace("return y + y", "return y + (y")
    editing.change(file, broken)
    shown = with_hints(broken, await editing.hints(file))
    assert "    y⟦: ~f32[3]⟧ = helper(x)" in shown
    line = broken.splitlines().index("    y = helper(x)")
    hover = await editing.hover(file, Position(line, 8))
    assert hover is not None
    assert hover.stale
    assert hover.markdown.startswith("*stale: describes the text before the last edits*\n")
    editing.close(file)


async def test_a_file_that_was_closed_between_keeps_its_answers_through_a_syntax_error(
    editing: Session, file: str
) -> None:
    editing.open(file, SOURCE)
    await trace_id(editing, file)
    editing.close(file)
    editing.open(file, SOURCE)
    assert [hint.label for hint in await editing.hints(file, wait=True)] == [": f32[3]"]
    editing.change(file, SOURCE.replace("return y + y", "return y + (y"))
    [stale] = await editing.hints(file)
    assert (stale.stale, stale.label) == (True, ": ~f32[3]")
    editing.close(file)


async def test_a_new_trace_replaces_the_stale_hints(editing: Session, file: str) -> None:
    slow = SOURCE.replace("WIDTH = 3", "import time\n\nWIDTH = 3").replace(
        "    y = helper(x)", "    time.sleep(1)\n    y = helper(x)"
    )
    editing.open(file, slow)
    await trace_id(editing, file)
    editing.change(file, slow.replace("helper(x)\n", "helper(x)[None]\n"))
    [stale] = await editing.hints(file)
    assert (stale.stale, stale.label) == (True, ": ~f32[3]")
    [fresh] = await editing.hints(file, wait=True)
    assert (fresh.stale, fresh.label) == (False, ": f32[1,3]")
    editing.close(file)


async def test_an_edit_cancels_the_trace_that_it_makes_stale(editing: Session, file: str) -> None:
    endless = SOURCE.replace(
        "    y = helper(x)", "    while True:\n        x = x + 0\n    y = helper(x)"
    )
    editing.open(file, endless)
    waiting = asyncio.create_task(editing.hints(file, wait=True))
    await asyncio.sleep(1)
    editing.change(file, SOURCE)
    hints = await asyncio.wait_for(editing.hints(file, wait=True), 120)
    assert [hint.label for hint in hints] == [": f32[3]"]
    await waiting
    editing.close(file)


async def test_a_refresh_follows_an_edit_although_the_older_text_is_traced_again(
    editing: Session, file: str, tmp_path: Path
) -> None:
    examples = '"""\n    Example inputs:\n        x: f32[]\n    """'
    text = f"import time\n\n\n{SOURCE}\n\ndef g(x):\n    {examples}\n    z = x + 1\n    return z\n"
    editing.open(file, text)
    await editing.hints(file, wait=True)
    # A tracer keeps few of its traces: it forgets those of the file for these.
    many = "".join(f"def g{n}(x):\n    {examples}\n    return x + {n}\n\n\n" for n in range(20))
    others = str(tmp_path / "others.py")
    editing.open(others, many)
    await editing.hints(others, wait=True)
    # It is busy until a file appears.
    begun, ends = Mark(tmp_path / "begun"), tmp_path / "ends"
    waits = f"import time\nfrom pathlib import Path\n\n\ndef w(x):\n    {examples}\n"
    waits += f"    {begun.statement}\n"
    waits += (
        f"    while not Path({str(ends)!r}).exists():\n        time.sleep(0.01)\n    return x\n"
    )
    busy = str(tmp_path / "busy.py")
    editing.open(busy, waits)
    while not begun.has_run:  # noqa: ASYNC110 - in another process
        await asyncio.sleep(0.01)

    lowering = asyncio.create_task(
        compiled_function(editing.engine, file, "g", "cpu", complete=True)
    )
    await asyncio.sleep(0)  # It is asked to lower what it does not know any more.
    while not editing.events.empty():
        editing.events.get_nowait()
    edited = text.replace("helper(x)\n", "helper(x)[None]\n")
    edited = edited.replace("z = x + 1", "time.sleep(1)\n    z = x[None]")
    editing.change(file, edited)
    await asyncio.sleep(
        1
    )  # The new text is traced next: `f` before what is to be lowered, `g` after it.
    ends.touch()

    async def news() -> None:
        shown: list[str] = []
        while shown != [": f32[1,3]", ": f32[1]"]:
            while await editing.events.get() != Refresh(file):
                pass
            shown = [hint.label for hint in await editing.hints(file)]

    await asyncio.wait_for(news(), 60)
    await asyncio.gather(lowering, return_exceptions=True)
    for path in (file, others, busy):
        editing.close(path)


async def test_an_unsaved_edit_of_an_imported_file_is_seen(
    editing: Session, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    library = tmp_path / "edited_library.py"
    library.write_text("SIZE = 2\n")
    user = str(tmp_path / "user.py")
    source = '''\
import jax.numpy as jnp
from edited_library import SIZE


def f(x):
    """
    Example inputs:
        x: f32[]
    """
    y = x + jnp.ones(SIZE)
    return y
'''
    editing.open(user, source)
    assert [h.label for h in await editing.hints(user, wait=True)] == [": f32[2]"]
    editing.open(str(library), "SIZE = 7\n")
    assert [h.label for h in await editing.hints(user, wait=True)] == [": f32[7]"]
    editing.change(str(library), "SIZE = 8\n")
    assert [h.label for h in await editing.hints(user, wait=True)] == [": f32[8]"]
    editing.close(str(library))
    assert [h.label for h in await editing.hints(user, wait=True)] == [": f32[2]"]
    library.write_text("SIZE = 1234\n")
    assert [h.label for h in await editing.hints(user, wait=True)] == [": f32[1234]"]
    editing.close(user)


async def test_the_chosen_example_set_is_used(editing: Session, file: str) -> None:
    source = SOURCE.replace(
        "x: f32[3]", "x: f32[3]\n    Example inputs (batch):\n        x: f32[9, 3]"
    )
    editing.open(file, source)
    assert editing.sets(file, "f") == ["", "batch"]
    assert [h.label for h in await editing.hints(file, wait=True)] == [": f32[3]"]
    editing.choose_set(file, "f", "batch")
    assert [h.label for h in await editing.hints(file, wait=True)] == [": f32[9,3]"]
    titles = [lens.title for lens in await editing.lenses(file) if "f" in lens.arguments]
    assert titles[0] == "batch (2 of 2)"
    with pytest.raises(LookupError, match="no example inputs named 'nothing'"):
        editing.choose_set(file, "f", "nothing")
    editing.close(file)


async def test_a_hover_traces_only_what_comes_to_its_place(editing: Session, file: str) -> None:
    endless = "\n\ndef g(x):\n    Z\n    Example inputs:\n        x: f32[]\n    Z\n    while True: x += 1\n"
    text = SOURCE.replace("Twice", "The word") + endless.replace("Z", '"""')
    editing.open(file, text)
    line = text.splitlines().index('    """The word.')
    assert await asyncio.wait_for(editing.hover(file, Position(line, 8)), 120) is None
    editing.close(file)


@pytest.mark.slow
async def test_restarting_traces_again(editing: Session, file: str) -> None:
    editing.open(file, SOURCE)
    await trace_id(editing, file)
    await editing.restart()
    assert [h.label for h in await editing.hints(file, wait=True)] == [": f32[3]"]
    editing.close(file)


FAILING = '''\
import jax.numpy as jnp

SIZE = 3


def double(v):
    w = v * 2
    return w


def f(x):
    """
    Example inputs:
        x: f32[3]
    """
    a = x + 1
    b = a.sum()
    c = jnp.ones(SIZE)
    d = double(b)
    e = c + d
    return e
'''


def only_hints(source: str, hints: list[Hint]) -> dict[str, str]:
    """The hints by the names that they stand at."""
    lines = source.splitlines()
    return {
        lines[hint.range.start.line][hint.range.start.column : hint.range.end.column]: hint.label
        for hint in hints
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        (
            "b = a.sum()",
            "b = a.summ()",
            {"a": ": f32[3]", "c": ": ~f32[3]"},
        ),
        (
            "b = a.sum()",
            "m\n    b = a.sum()",
            {"a": ": f32[3]", "b": ": ~f32[]", "c": ": ~f32[3]", "d": ": ~f32[]"},
        ),
        (
            "w = v * 2",
            "w = v @ 2",
            {"a": ": f32[3]", "b": ": f32[]", "c": ": f32[3]"},
        ),
        (
            "SIZE = 3",
            "SIZE = nothing",
            {"a": ": ~f32[3]", "b": ": ~f32[]", "d": ": ~f32[]", "w": ": ~f32[]"},
        ),
        (
            "x: f32[3]",
            "x = nothing",
            {"c": ": ~f32[3]"},
        ),
        (
            "a = x + 1",
            "if x.sum() > 0:\n        x = x + 1\n    a = x + 1",
            {"c": ": ~f32[3]"},
        ),
        (
            "a = x + 1",
            "for i in range(len(c)):\n        a = x + i",
            {"c": ": ~f32[3]"},
        ),
        (
            "c = jnp.ones(SIZE)\n    d = double(b)\n",
            "c = jnp.ones(2)\n    z = jnp.zeros((SIZE, 4)) + c\n    d = double(b)\n",
            {"a": ": f32[3]", "b": ": f32[]", "c": ": f32[2]", "d": ": ~f32[]", "w": ": ~f32[]"},
        ),
    ],
    ids=[
        "an assignment",
        "half a name",
        "a helper",
        "a constant",
        "example inputs",
        "a condition",
        "a loop",
        "below a change",
    ],
)
async def test_where_a_trace_fails_only_what_does_not_depend_on_it_is_left_marked(
    editing: Session, file: str, before: str, after: str, left: dict[str, str]
) -> None:
    editing.open(file, FAILING)
    whole = only_hints(FAILING, await editing.hints(file, wait=True))
    assert whole["e"] == ": f32[3]"
    edited = FAILING.replace(before, after)
    editing.change(file, edited)
    hints = await editing.hints(file, wait=True)
    shown = only_hints(edited, hints)
    e = {"e": ": ~f32[3]"} if after.startswith("m\n") else {}
    w = {"w": ": ~f32[]"} if after.startswith("m\n") else {}
    assert shown == {**left, **w, **e}
    assert all(hint.stale == ("~" in hint.label) for hint in hints)
    editing.change(file, FAILING)
    assert only_hints(FAILING, await editing.hints(file, wait=True)) == whole
    editing.close(file)


async def test_what_is_left_after_an_error_says_so_on_hover(editing: Session, file: str) -> None:
    editing.open(file, FAILING)
    await editing.hints(file, wait=True)
    edited = FAILING.replace("b = a.sum()", "m\n    b = a.sum()")
    editing.change(file, edited)
    [hint] = [hint for hint in await editing.hints(file, wait=True) if ": ~f32[]" in hint.label][:1]
    line = edited.splitlines().index("    b = a.sum()")
    hover = await editing.hover(file, Position(line, 8))
    assert hover is not None
    assert "a: f32[3]" in hover.markdown
    for text in (hint.tooltip, hover.markdown):
        first, _, rest = text.partition("\n\n")
        assert first == (
            "*stale: describes the text before the last edits; the newest trace fails:*"
        )
        assert "name 'm' is not defined" in rest
    editing.close(file)


async def test_a_document_of_an_older_text_says_so_in_its_first_line(
    editing: Session, file: str
) -> None:
    editing.open(file, SOURCE)
    fresh = await editing.show(file, "f")
    editing.change(file, SOURCE.replace("return y + y", "return y + (y"))
    shown = await editing.show(file, "f")
    first, rest = shown.text.split("\n", 1)
    assert first == "# stale: describes the text before the last edits"
    assert rest == fresh.text
    assert [link.line for link in shown.links] == [link.line + 1 for link in fresh.links]
    editing.close(file)


async def test_an_edit_during_a_hover_ends_it(editing: Session, file: str) -> None:
    other = SOURCE[SOURCE.index("def f(x)") :].replace("def f", "\n\ndef g")
    text = SOURCE.replace("    y = helper(x)", "    while True: y = helper(x)") + other
    editing.open(file, text)
    line = text.splitlines().index("    return x * jnp.ones(WIDTH)")
    hovering = asyncio.create_task(editing.hover(file, Position(line, 11)))
    await asyncio.sleep(0)  # The hover waits for the trace of `f` now.
    shorter = SOURCE[SOURCE.index("def f(x)") : SOURCE.index("    y =")] + "    return x\n"
    editing.change(file, shorter)
    assert await asyncio.wait_for(hovering, 120) is None
    editing.close(file)


async def test_code_that_asks_for_its_file_sees_the_text_in_the_editor(
    editing: Session, file: str, tmp_path: Path
) -> None:
    asks = "return x * len(inspect.getsource(sys.modules[__name__]))"
    saved = SOURCE.replace("y = helper(x)\n    return y + y", asks)
    saved = saved.replace(
        "import jax.numpy as jnp", "import inspect\nimport sys\n\nimport jax.numpy as jnp"
    )
    (tmp_path / "edited.py").write_text(saved)
    editing.open(file, saved)
    for text in (saved, saved + "\n\nLAST = 1\n", saved.replace("WIDTH = 3\n", "WIDTH = 3\n\n")):
        editing.change(file, text)
        shown = await editing.show(file, "f")
        assert f"mul a {len(text)}.0:f32[]" in shown.text
