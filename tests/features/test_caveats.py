"""What an answer leaves out, where people look: the words, and that text of the workspace is only
text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from jaxsight.features import caveats
from jaxsight.features.caveats import completeness
from jaxsight.features.model import Linked, VirtualText
from jaxsight.features.named_function import view_of
from jaxsight.rules.fixing.context import applied
from jaxsight.session import Session
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Position, Range
from jaxsight.text.markdown_reader import plain
from jaxsight.wire.messages.replies import Traced
from jaxsight.wire.messages.requests import TransformedSource

TRAIN = "`train()` was not run and may change `CFG`"


def caveat(reason: str = TRAIN, line: int = 120) -> SliceCaveat:
    return SliceCaveat(Range(Position(line - 1, 0), Position(line - 1, 0)), reason)


def test_a_hover_has_a_line_for_each_caveat() -> None:
    found = [caveat(), caveat("`load()` raised FileNotFoundError: data.npz", 7)]
    assert caveats.markdown(found) == (
        "⚠ may differ from the imported module:\n\n"
        "* line 120: `train()` was not run and may change `CFG`\n"
        "* line 7: `load()` raised FileNotFoundError: data.npz"
    )


def test_no_caveats_have_no_words() -> None:
    assert caveats.markdown([]) == ""
    shown = VirtualText("f", "text\n")
    assert caveats.commented(shown, "jaxpr") == shown
    assert caveats.record([]) == {"complete": True, "caveats": []}


def test_many_caveats_are_counted_after_the_third() -> None:
    found = [caveat(line=line) for line in range(1, 6)]
    assert caveats.markdown(found).splitlines()[2:] == [
        *(f"* line {line}: {TRAIN}" for line in (1, 2, 3)),
        "* 2 more",
    ]
    shown = caveats.commented(VirtualText("f", "text\n", caveats=tuple(found)), "lax")
    assert shown.text.splitlines()[3:] == ["# note: 2 more", "text"]
    record = caveats.record(found)["caveats"]
    assert isinstance(record, list)
    assert len(record) == 5, "programs get all of them"


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("`f(a)` raised E: [x](command:y)", r"`f(a)` raised E: \[x\](command:y)"),
        ("`f` raised E: <img src=x>", r"`f` raised E: \<img src=x\>"),
        ("`f` raised E: **b** __i__", r"`f` raised E: \*\*b\*\* \_\_i\_\_"),
        ("`f` raised E: a ` b", "`f` raised E: a ' b"),
        ("`f` raised E: ``` c", "`f` raised E: ''' c"),
        ("`[x](y)` was not run", "`[x](y)` was not run"),
    ],
)
def test_nothing_but_code_is_markup(reason: str, shown: str) -> None:
    text = caveats.markdown([caveat(reason)]).splitlines()[-1]
    assert text == f"* line 120: {shown}"
    without_code_marks = shown.replace("`", "").replace("\\", "")
    assert plain(text) == f"* line 120: {without_code_marks}"


@pytest.mark.parametrize(
    "hidden", ["\x1b[2J", "\r\n", "\u202e", "\u200b", "\x00", "\u2028", "\x9b31m", "\udc80"]
)
def test_a_reason_is_one_line_that_no_terminal_obeys(hidden: str) -> None:
    reason = caveats.reason(caveat(f"`f` raised E: a{hidden}b"))
    assert reason.isprintable()
    assert reason.startswith("`f` raised E: a")
    assert reason.endswith("b")


def test_a_long_reason_is_clipped() -> None:
    reason = caveats.reason(caveat("x" * 10_000))
    assert len(reason) == 200
    assert reason.endswith("…")


@pytest.mark.parametrize(("kind", "start"), [("jaxpr", "#"), ("pretty", "#"), ("hlo", "//")])
def test_a_document_has_comments_on_top_and_its_links_below(kind: str, start: str) -> None:
    place = Range(Position(4, 0), Position(4, 9))
    shown = VirtualText("f", "first\nsecond\n", (Linked(1, "0", place),), caveats=(caveat(),))
    made = caveats.commented(shown, kind)
    assert made.text == f"{start} note: line 120: {TRAIN}\nfirst\nsecond\n"
    assert made.links == (Linked(2, "0", place),)


def test_a_document_without_caveats_stays_as_it_is() -> None:
    shown = VirtualText("f", "first\n", (Linked(0, "0", None),))
    assert caveats.commented(shown, "jaxpr") is shown


MODEL = '''\
CFG = {"scale": 2.0}


def train():
    CFG["scale"] = 5.0


train()  # jaxsight: never


def scaled(
    x,
):
    """
    Example inputs:
        x: f32[3]
    """
    y = x * CFG["scale"]
    return y


def plain(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x + 1


def broken(x):
    """
    Example inputs:
        x: f32[3]
    """
    return x * CFG["missing"]
'''
NEVER = "`train()` was not run (marked `never`) and may change `CFG`"
LINE = f"line 8: {NEVER}"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("project") / "model.py")


@pytest_asyncio.fixture(loop_scope="module")
async def opened(session: Session, model: str) -> AsyncIterator[Session]:
    session.open(model, MODEL)
    yield session
    session.close(model)


def place(text: str, source: str = MODEL) -> Position:
    """Where a text first stands."""
    line = source[: source.index(text)].count("\n")
    return Position(line, source.splitlines()[line].index(text.partition("\n")[0]))


in_session = pytest.mark.asyncio(loop_scope="module")


UNDEFINED = """\
import jax.numpy as jnp

show(1)


def f(x):
    '''
    Example inputs:
        x: f32[3]
    '''
    return x * 2


show(f)
show(jnp.zeros(3))
other(2)
"""


@in_session
async def test_statements_that_fail_for_one_reason_are_one_caveat(
    session: Session, model: str
) -> None:
    session.open(model, UNDEFINED)
    view = await view_of(session.engine, model, "f")
    session.close(model)
    assert list(map(caveats.text, view.caveats)) == [
        "line 3: `show(1)` and 2 other statements raised NameError: “name 'show' is not defined”",
        "line 16: `other(2)` raised NameError: “name 'other' is not defined”",
    ]


@in_session
async def test_a_module_that_reads_its_own_name_is_a_caveat(
    session: Session, tmp_path: Path
) -> None:
    """Its import binds the name that is missing, which no earlier statement failed to bind."""
    (tmp_path / "shared.py").write_text("shared.memo = 1\n", encoding="utf-8")
    model = str(tmp_path / "uses_shared.py")
    session.open(model, f"import shared\n{UNDEFINED[: UNDEFINED.index('show(f)')]}")
    view = await view_of(session.engine, model, "f")
    session.close(model)
    assert next(map(caveats.text, view.caveats)) == (
        "line 1: `import shared` raised NameError: “name 'shared' is not defined”"
    )


@in_session
async def test_hover_on_a_function_names_what_was_not_run(opened: Session, model: str) -> None:
    hover = await opened.hover(model, place("scaled"))
    assert hover is not None
    assert f"\n* {LINE}\n" in hover.markdown
    assert hover.markdown.index(LINE) < hover.markdown.index("lambda"), "before the jaxpr"
    hover = await opened.hover(model, place("plain"))
    assert hover is not None
    assert "⚠" not in hover.markdown


@in_session
async def test_hover_on_a_function_that_fails_names_it_too(opened: Session, model: str) -> None:
    hover = await opened.hover(model, place("broken"))
    assert hover is not None
    assert "KeyError" in hover.markdown
    assert f"* {LINE}" in hover.markdown


@in_session
async def test_hover_on_an_expression_has_the_mark(opened: Session, model: str) -> None:
    hover = await opened.hover(model, place('* CFG["scale"]'))
    assert hover is not None
    assert "in `scaled` · ⚠ 1 caveat" in hover.markdown


@in_session
async def test_a_hint_at_the_end_of_the_head_has_the_mark(opened: Session, model: str) -> None:
    hints = await opened.hints(model, wait=True)
    marks = {hint.range.start: hint for hint in hints if hint.label == "⚠ 1 caveat"}
    assert marks.keys() == {
        Position(place("def scaled").line + 2, len("):")),
        Position(place("def broken").line, len("def broken(x):")),
    }
    assert all(f"* {LINE}" in hint.tooltip for hint in marks.values())


@in_session
async def test_lines_in_caveats_follow_the_text(session: Session, model: str) -> None:
    session.open(model, MODEL)
    await session.hover(model, place("scaled"))
    text = "# a comment\n\n" + MODEL
    session.change(model, text)
    hover = await session.hover(model, place("scaled", text))
    session.close(model)
    assert hover is not None
    assert f"* line 10: {NEVER}" in hover.markdown


@in_session
async def test_actions_on_the_statement_decide_whether_it_runs(opened: Session, model: str) -> None:
    await opened.hover(model, place("scaled"))
    at = place("train()  #")
    actions = await opened.actions(model, Range(at, at))
    [action] = [each for each in actions if "run this statement" in each.title]
    assert action.title == "Always run this statement"
    text = applied(MODEL, list(action.edits))
    assert "train()  # jaxsight: always\n" in text
    opened.change(model, text)
    view = await view_of(opened.engine, model, "scaled")
    assert view.caveats == ()
    assert isinstance(view.answer.reply, Traced)
    assert "mul a 5.0" in view.answer.reply.jaxpr


@in_session
async def test_documents_know_what_they_leave_out(opened: Session, model: str) -> None:
    for what in ("jaxpr", "stablehlo", TransformedSource()):
        shown = await opened.show(model, "scaled", what)
        assert [each.reason for each in shown.caveats] == [NEVER]
        assert NEVER not in shown.text
        assert caveats.commented(shown, "jaxpr").text.startswith(f"# note: {LINE}\n")


@in_session
async def test_every_answer_says_whether_it_is_complete(opened: Session, model: str) -> None:
    answers = await completeness(opened.engine, model)
    found = {each.function: [one.reason for one in each.caveats] for each in answers}
    assert found == {"scaled": [NEVER], "plain": [], "broken": [NEVER]}
