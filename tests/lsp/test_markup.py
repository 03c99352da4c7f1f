"""Hovers for clients that show plain text."""

from __future__ import annotations

import pytest

from jaxsight.text.markdown_reader import plain


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("```python\nf(x: f32[8])\n```\n\nin `f`", "f(x: f32[8])\n\nin f"),
        ("**attention** is *not* traced", "attention is not traced"),
        ("see [JAX's page](https://docs.jax.dev/x)", "see JAX's page (https://docs.jax.dev/x)"),
        ("[run](command:x?%5B%5D) it", "run it"),
        ("`a * b * c` and a * b * c", "a * b * c and a * b * c"),
        ("snake_case_name and __init__ in `__init__`", "snake_case_name and __init__ in __init__"),
        (
            "```text\n{ lambda ; a:f32[8]. let\n    b:f32[8] = *c* in (b,) }\n```",
            "{ lambda ; a:f32[8]. let\n    b:f32[8] = *c* in (b,) }",
        ),
        ("see [`f`](https://docs.jax.dev/f_1)", "see f (https://docs.jax.dev/f_1)"),
        ("at [model.py:3](file:///a%20b/model.py)", "at model.py:3 (file:///a%20b/model.py)"),
        ("__init__ is *not* __run__", "__init__ is not __run__"),
        ("`` a`b ``", "a`b"),
        ("* one\n* two\n\n| a | b |", "* one\n* two\n\n| a | b |"),
        ("f32\\[8\\]", "f32[8]"),
        ("\\*\\*a\\*\\* \\[x\\](command:y) \\`", "**a** [x](command:y) `"),
    ],
)
def test_markup_goes_and_words_stay(markdown: str, text: str) -> None:
    assert plain(markdown) == text
