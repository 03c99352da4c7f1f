"""`# jaxsight: always` and `# jaxsight: never` put on a statement: where the comment goes, and what
it replaces.
"""

from __future__ import annotations

import pytest

from jaxsight.features.code_actions import run_marks
from jaxsight.rules.fixing.context import applied
from jaxsight.source.module import Module
from jaxsight.source.slicing.chunk_roles import SliceCaveat
from jaxsight.source.text import Position, Range


def at(line: int) -> Range:
    return Range(Position(line, 0), Position(line, 0))


def marked(text: str, line: int = 0) -> dict[str, str]:
    """By the title of each action at a line (from 0): the text that it makes, given a caveat about
    that statement.
    """
    module = Module.parse(text)
    chunk = module.chunk_at(Position(line, 0))
    assert chunk is not None
    caveats = [SliceCaveat(at(chunk.first_line), "`train()` was not run")]
    return {
        action.title.split()[0]: applied(text, list(action.edits))
        for action in run_marks(module, caveats, at(line))
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train()\n", "train()  # jaxsight: always\n"),
        ("train()", "train()  # jaxsight: always"),
        ("train()   \n", "train()  # jaxsight: always\n"),
        ("train()  # slow\n", "train()  # slow  # jaxsight: always\n"),
        ("train(\n    1,\n)\n", "train(  # jaxsight: always\n    1,\n)\n"),
        ("for i in y:\n    train()\n", "for i in y:  # jaxsight: always\n    train()\n"),
        ("@known\ndef f():\n    pass\n", "@known  # jaxsight: always\ndef f():\n    pass\n"),
        ("x = 1; train()\n", "x = 1; train()  # jaxsight: always\n"),
    ],
)
def test_the_comment_ends_the_first_line(text: str, expected: str) -> None:
    assert marked(text)["Always"] == expected


@pytest.mark.parametrize(
    "text",
    [
        'run("""\ntext""")\n',
        "run(f'''\n{x}''')\n",
        "x = \\\n    train()\n",
        "'a' \\\n    'b'\n",
    ],
)
def test_the_comment_stands_above_a_line_that_cannot_have_one(text: str) -> None:
    assert marked(text)["Never"] == f"# jaxsight: never\n{text}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("train()  # jaxsight: {}\n", 0),
        ("# jaxsight: {}\ntrain()\n", 1),
        ("train(\n    1,\n)  # jaxsight: {}\n", 0),
        ("#jaxsight:{} because\ntrain()\n", 1),
    ],
)
def test_the_other_mark_is_replaced_and_the_one_that_is_there_not_offered(
    text: str, line: int
) -> None:
    always, never = text.format("always"), text.format("never")
    assert marked(never, line) == {"Always": always}
    assert marked(always, line) == {"Never": never}


def test_a_mark_in_a_string_is_no_mark() -> None:
    text = 'run("# jaxsight: never")\n'
    assert marked(text) == {
        "Always": 'run("# jaxsight: never")  # jaxsight: always\n',
        "Never": 'run("# jaxsight: never")  # jaxsight: never\n',
    }


def test_only_statements_that_a_caveat_names_have_the_actions_on_any_of_their_lines() -> None:
    module = Module.parse("a = 1\nfor i in y:\n    train()\nb = 2\n")
    caveats = [
        SliceCaveat(at(1), "`train()` was not run"),
        SliceCaveat(at(1), "the loop was stopped"),
    ]
    offered = [len(list(run_marks(module, caveats, at(line)))) for line in range(4)]
    assert offered == [0, 2, 2, 0]
