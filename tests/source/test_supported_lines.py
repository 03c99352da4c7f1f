"""What the text alone says of an earlier trace: which lines still stand when others fail."""

from __future__ import annotations

from textwrap import dedent

import pytest

from jaxsight.source.module import Module
from jaxsight.source.supported_lines import lost_lines, names_bound
from jaxsight.source.text_shift import TextShift

MARK = "  # lost"


def lost_in(text: str, before: str | None = None) -> str:
    """The text with its lost lines marked; those that say `fails` fail, the others stood in
    `before` too.
    """
    module = Module.parse(text)
    old = Module.parse(text if before is None else before)
    shift = TextShift(old.text, module.text)
    failing = {line for line, content in enumerate(module.lines) if "fails" in content}
    gone = names_bound(old.chunks, shift.keeps)
    lost = lost_lines(module.chunks, "f", failing, shift.is_unchanged, gone)
    return "\n".join(
        line + MARK if number in lost else line for number, line in enumerate(module.lines)
    )


@pytest.mark.parametrize(
    "marked",
    [
        """
        def f(x):
            a = fails(x)  # lost
            b = x
            c = a + b  # lost
            return b
        """,
        """
        def f(x):
            y = x
            for i in range(3):
                z = y  # lost
                y = fails(i)  # lost
            return z  # lost
        """,
        """
        def f(x):
            if fails(x):  # lost
                y = 1  # lost
            else:
                y = 2  # lost
            z = x
            return y  # lost
        """,
        """
        def f(x):
            with scope() as s:
                y = fails(s)  # lost
                z = s
            return z
        """,
        """
        def g(v):
            w = v
            return fails(w)  # lost

        def f(x):
            a = g(x)  # lost
            b = x
            return b
        """,
        """
        def g(v):  # lost
            return v  # lost

        def h(v):
            return v

        def f(x):
            y = fails(x)  # lost
            h(x)
            h(y)  # lost
            return g(y)  # lost
        """,
        """
        class Model:
            def layer(self, v):
                self.w = fails(v)  # lost
                return self.w  # lost

            def other(self, v):
                return v

        def f(m, x):
            y = m.layer(x)  # lost
            return m.other(x)
        """,
        """
        SIZE = fails()  # lost
        HALF = SIZE // 2  # lost

        def f(x):
            y = x
            z = y[:HALF]  # lost
            HALF_ = 1
            return y
        """,
        """
        def f(x):
            buffer = {}
            buffer["a"] = fails(x)  # lost
            total = 0
            total += buffer["a"]  # lost
            return total  # lost
        """,
        """
        def f(x):
            def inner(y):
                z = y + a  # lost
                a_ = y
                return z  # lost
            a = fails(x)  # lost
            return inner(x)  # lost
        """,
    ],
)
def test_what_depends_on_what_fails_is_lost(marked: str) -> None:
    expected = dedent(marked)
    assert lost_in(expected.replace(MARK, "")) == expected


def test_what_depends_on_a_changed_or_removed_line_is_lost() -> None:
    before = "def f(x):\n    x = x * 2\n    a = x + 1\n    b = 3\n    return a\n"
    removed = "def f(x):\n    a = x + 1\n    b = 3\n    return a\n"
    assert lost_in(removed, before) == (
        "def f(x):\n    a = x + 1  # lost\n    b = 3\n    return a  # lost\n"
    )
    changed = before.replace("x * 2", "x[None]")
    assert lost_in(changed, before) == (
        "def f(x):\n    x = x[None]  # lost\n    a = x + 1  # lost\n    b = 3\n    return a  # lost\n"
    )


def test_hundreds_of_branches_depend_on_the_first() -> None:
    branches = "".join(f"    elif x == {n}:\n        y = {n}\n" for n in range(300))
    text = f"def f(x):\n    if fails(x):\n        y = 0\n{branches}    return y\n"
    assert lost_in(text).count(MARK) == text.count("\n") - 1  # but the head
