"""The engine's Markdown in a terminal."""

from __future__ import annotations

import pytest

from jaxsight.cli.output.printing import Printer, print_markdown


def printed(markdown: str, capsys: pytest.CaptureFixture[str]) -> str:
    print_markdown(Printer(), markdown)
    return capsys.readouterr().out


def test_code_is_printed_as_it_is_and_prose_without_its_marks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    markdown = "```python\nf(x: f32[8]) -> f32[8]\n```\n\n**f** is *stale* `now`\n\n```text\n{ lambda ; a:f32[8]. }\n```"
    assert printed(markdown, capsys) == (
        "f(x: f32[8]) -> f32[8]\n\nf is stale `now`\n\n{ lambda ; a:f32[8]. }\n"
    )


def test_links_keep_their_address(capsys: pytest.CaptureFixture[str]) -> None:
    markdown = "see ([JX401](https://e.org/x))"
    assert printed(markdown, capsys) == "see (JX401, https://e.org/x)\n"


def test_stars_of_arithmetic_are_no_emphasis(capsys: pytest.CaptureFixture[str]) -> None:
    markdown = "a * b * c and **kwargs, *args"
    assert printed(markdown, capsys) == f"{markdown}\n"


def test_brackets_of_shapes_are_no_markup_of_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert printed("```text\nx: f32[bold]\n```", capsys) == "x: f32[bold]\n"
