"""The engine's Markdown in a terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from jaxsight.cli.prose import plain, print_markdown


def printed(markdown: str) -> str:
    console = Console(file=StringIO(), soft_wrap=True, highlight=False)
    print_markdown(console, markdown)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_code_is_printed_as_it_is_and_prose_without_its_marks() -> None:
    markdown = "```python\nf(x: f32[8]) -> f32[8]\n```\n\n**f** is *stale* `now`\n\n```text\n{ lambda ; a:f32[8]. }\n```"
    assert printed(markdown) == (
        "f(x: f32[8]) -> f32[8]\n\nf is stale `now`\n\n{ lambda ; a:f32[8]. }\n"
    )


def test_links_keep_their_address() -> None:
    assert plain("see ([JX401](https://e.org/x))") == "see (JX401, https://e.org/x)"


def test_stars_of_arithmetic_are_no_emphasis() -> None:
    assert plain("a * b * c and **kwargs, *args") == "a * b * c and **kwargs, *args"


def test_brackets_of_shapes_are_no_markup_of_the_terminal() -> None:
    assert printed("```text\nx: f32[bold]\n```") == "x: f32[bold]\n"
