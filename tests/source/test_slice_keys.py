"""When a chunk must be executed again: keys change with meaning and dependencies, and with nothing
else.
"""

from __future__ import annotations

import pytest

from jaxsight.source.module import Module
from jaxsight.source.slicing.slices import Slice, slice_for

TEXT = '''"""Module."""
from __future__ import annotations

import jax
import jax.numpy as jnp

SCALE = 2.0
PARAMS = {}
PARAMS["w"] = 1


def helper(x):
    """Helps."""
    return x * SCALE + PARAMS["w"]


class Model:
    """A model."""

    def __call__(self, x):
        """Calls."""
        return helper(x)


def unrelated(x):
    return x


def f(x, m: Model):
    """Doc of f."""
    y = helper(x)  # a comment
    return jnp.sum(y)


print(f(1))
'''


EVERYTHING = None


def slice_of(text: str) -> Slice:
    return slice_for(Module.parse(text), ["f"])


def changed(before: str, after: str) -> list[str]:
    """The first lines of the chunks of `after` whose keys `before` does not have."""
    known = {chunk.key for chunk in slice_of(before).chunks}
    return [c.text.partition("\n")[0] for c in slice_of(after).chunks if c.key not in known]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# a comment", "# another"),
        ('"""Doc of f."""', '"""Doc of f.\n\n    Example inputs:\n        x: f32[3]\n    """'),
        ('"""A model."""', '"""Another."""'),
        ('    """Doc of f."""\n', ""),
        ('"""Module."""\n', ""),
        ("import jax\n", "\n\n\n# moved down\nimport jax\n"),
        ("y = helper(x)", "y = (\n        helper( x )\n    )"),
        ("    return x\n", "    return -x\n"),
        ("def unrelated(x):", "def renamed(x, y):"),
        ("print(f(1))\n", "print(f(2))\nfor i in range(3):\n    print(i)\n"),
        ("SCALE = 2.0", "SCALE = 2.00"),
        ('PARAMS["w"]', "PARAMS['w']"),
        ("\n", "\r\n"),
        ("import jax\n", "import jax\nNEW = 1\n"),
    ],
)
def test_what_means_the_same_keeps_the_key(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert slice_of(text).key == slice_of(TEXT).key


@pytest.mark.parametrize(
    ("old", "new", "again"),
    [
        ("jnp.sum(y)", "jnp.max(y)", ["def f(x, m: Model):"]),
        (
            "SCALE = 2.0",
            "SCALE = 2",
            ["SCALE = 2", "def helper(x):", "class Model:", "def f(x, m: Model):"],
        ),
        (
            'import jax.numpy as jnp\n\nSCALE = 2.0\nPARAMS = {}\nPARAMS["w"] = 1\n',
            'import numpy as jnp\n\nSCALE = 2.0\nPARAMS = {"w": 1}\n',
            EVERYTHING,
        ),
        ('PARAMS["w"] = 1', 'PARAMS["w"] = 2', EVERYTHING),
        ("return helper(x)\n", "return helper(-x)\n", ["class Model:", "def f(x, m: Model):"]),
    ],
)
def test_an_edit_runs_again_what_depends_on_it(old: str, new: str, again: list[str] | None) -> None:
    """What acts may change anything, so everything depends on it."""
    text = TEXT.replace(old, new)
    assert text != TEXT
    everything = [chunk.text.partition("\n")[0] for chunk in slice_of(text).chunks]
    assert changed(TEXT, text) == (everything if again is EVERYTHING else again)


def test_future_imports_are_in_every_key() -> None:
    text = TEXT.replace("from __future__ import annotations\n", "\n")
    assert len(changed(TEXT, text)) == len(slice_of(text).chunks)


def test_configuration_is_in_every_key_and_so_is_its_place() -> None:
    with_x64 = TEXT.replace("SCALE", "jax.config.update('jax_enable_x64', True)\nSCALE", 1)
    assert len(changed(TEXT, with_x64)) == len(slice_of(with_x64).chunks)
    moved = TEXT.replace(
        "def unrelated", "jax.config.update('jax_enable_x64', True)\ndef unrelated"
    )
    assert slice_of(moved).key != slice_of(with_x64).key


def test_docstrings_count_when_the_slice_reads_them() -> None:
    text = TEXT.replace("jnp.sum(y)", "jnp.sum(y), helper.__doc__")
    again = changed(text, text.replace("Helps.", "Helps a lot."))
    assert again == ["def helper(x):", "class Model:", "def f(x, m: Model):"]


def test_functions_that_call_each_other_have_keys_that_change_together() -> None:
    text = "def f(x): return g(x)\ndef g(x): return f(x) + h(x)\ndef h(x): return 1\n"
    assert len({c.key for c in slice_of(text).chunks}) == 3
    assert changed(text, text.replace("f(x) + h(x)", "f(x) - h(x)")) == [
        "def f(x): return g(x)",
        "def g(x): return f(x) - h(x)",
    ]


def test_equal_statements_have_keys_of_their_own() -> None:
    text = "n = 0\nn += 1\nn += 1\ndef f(): return n\n"
    found = slice_of(text)
    assert len({c.key for c in found.chunks}) == 4
    assert len({c.id for c in found.chunks}) == 3


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("K = 2\nm = K * 3\n", "m = K * 3\nK = 2\n"),
        ("n = 1\nm = n\nn = 2\n", "n = 1\nn = 2\nm = n\n"),
        ("L = []\nm = len(L)\nL.append(1)\n", "L = []\nL.append(1)\nm = len(L)\n"),
        (
            "L = []\ndef g(): return len(L)\nm = g()\nL.append(1)\n",
            "L = []\ndef g(): return len(L)\nL.append(1)\nm = g()\n",
        ),
        ("L = []\nL.append(1)\nL.append(2)\n", "L = []\nL.append(2)\nL.append(1)\n"),
        ("n = 1\nn += 2\nn *= 2\n", "n = 1\nn *= 2\nn += 2\n"),
    ],
)
def test_the_order_of_changes_is_in_the_keys(before: str, after: str) -> None:
    use = "m = 0\n" if "m =" not in before else ""
    last = "L = []\n" if "L =" not in before else ""
    last += "n = 0\n" if "n =" not in before else ""
    text = use + last + "{}def f(): return m, n, L\n"
    assert slice_of(text.format(before)).key != slice_of(text.format(after)).key


def test_keys_after_edits_are_those_of_a_fresh_reading() -> None:
    module = Module.parse(TEXT)
    text = TEXT
    for old, new in [
        ("jnp.sum", "jnp.max"),
        ("def unrelated", "def other(p):\n    p.update(a=1)\nother(PARAMS)\ndef unrelated"),
        ("p.update(a=1)", "return p"),
        ("return p\nother", "return subprocess.run(p)\nother"),
        ("SCALE = 2.0", "SCALE = 3.0"),
        ("SCALE = 3.0", "jax.config.update('jax_enable_x64', True)\nSCALE = 3.0"),
        ("x * SCALE", "x * SCALE * OTHER"),
        ("def unrelated", "OTHER = 1\n\n\ndef unrelated"),
        ("jax_enable_x64', True", "jax_enable_x64', False"),
        ("OTHER = 1", "OTHER = ("),
        ("OTHER = (", "OTHER = 2"),
        ("x * SCALE * OTHER", "x"),
        ("def f(", "def f(*, "),
        ("def f(*, ", "def f("),
    ]:
        text = text.replace(old, new)
        module = module.edited(text)
        assert slice_for(module, ["f"]) == slice_of(text)
